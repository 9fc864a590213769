"""What a figure hands to plotly.js; that it draws it, the browsers' tests of the reports see."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas as pd
import pytest

from abeyant.pages.figure import Figure


@pytest.mark.parametrize(
    ("values", "name", "read"),
    [
        (np.array([1.5, np.nan]), "f8", [1.5, np.nan]),
        (pd.Series([1, 2], dtype="int32"), "i4", [1, 2]),
        (np.array([1, -(2**40)]), "f8", [1.0, -(2.0**40)]),  # JavaScript has no such integers
        (np.array([1, 2], ">u2"), "u2", [1, 2]),
        (pd.Series([0.25], dtype="float32"), "f4", [0.25]),
    ],
)
def test_numbers_of_an_array_go_as_their_bytes(values: object, name: str, read: list[float]) -> None:
    figure = Figure()
    figure.add_scatter(marker={"size": values})
    (trace,) = json.loads(json.dumps(figure.to_dict()))["data"]
    sent = trace["marker"]["size"]
    assert (trace["type"], sent["dtype"]) == ("scatter", name)
    found = np.frombuffer(base64.b64decode(sent["bdata"]), f"<{name}")
    np.testing.assert_array_equal(found, np.array(read))


def test_all_else_goes_as_json_has_it() -> None:
    figure = Figure()
    figure.add_bar(x=["a", None], y=[1, float("nan")], text=pd.Series(["b"]), width=np.float64(0.5), z=np.array([]))
    figure.layout["yaxis"] = {"range": [0, np.int64(2)]}
    figure.update_layout(height=3, xaxis={"type": "log"})
    figure.add_annotation(text="one")
    figure.add_annotation(text="two")
    assert json.loads(json.dumps(figure.to_dict(), allow_nan=False)) == {
        "data": [{"type": "bar", "x": ["a", None], "y": [1, None], "text": ["b"], "width": 0.5, "z": []}],
        "layout": {
            "yaxis": {"range": [0, 2]},
            "height": 3,
            "xaxis": {"type": "log"},
            "annotations": [{"text": "one"}, {"text": "two"}],
        },
    }
