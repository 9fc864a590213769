"""The model's page in a real browser: every explanation has a row, and all of it can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from abeyant.pipeline.replication.explanations import CLOCK, HANDLING, UNEXPLAINED
from abeyant.pipeline.report.model_page import write_model_report
from pages.browser import browse, installed
from pages.legible import lasting_faults

_BROWSER = installed()


@pytest.mark.slow
@pytest.mark.skipif(_BROWSER is None, reason="no browser is installed")
def test_every_explanation_has_a_row_of_its_own_and_can_be_read(tmp_path: Path) -> None:
    names = [CLOCK, HANDLING, UNEXPLAINED]
    produces = {"produces": [90_000, 40, 2]}
    tables: dict[str, dict[str, Any]] = {
        "explanations": {"explanation": names, **produces, "least_ms": -1.0, "median_ms": 0.2, "most_ms": 9.0},
        "errors": {"instance": "1", "explanation": names, "low_ms": [0.0, 2.25, 5.0], **produces},
        "agreement": {
            "instance": "1",
            "logged_ms": [1.0, 9.0, 2e3],
            "predicted_ms": [1.0, 9.0, 1e3],
            "logged": "completed",
        }
        | produces,
        "outliers": {"instance": ["1"], "op_id": "kafka-request.log:17", "start": pd.Timestamp("2026-01-01", tz="UTC")}
        | {"explanation": UNEXPLAINED, "logged_ms": 2e3, "predicted_ms": 1e3, "error_ms": -1e3, "handling_ms": 0.1},
    }
    for name, columns in tables.items():
        (tmp_path / name).mkdir()
        pd.DataFrame(columns).to_parquet(tmp_path / name / "part.parquet")
    write_model_report(tmp_path, tmp_path / "report.html")
    assert _BROWSER is not None
    with browse(_BROWSER) as page:
        for scheme, width in (("light", 1100), ("dark", 1100), ("light", 400)):
            page.show(width=width, scheme=scheme)
            page.open(tmp_path / "report.html")
            assert lasting_faults(page) == []
            titles = page.run("[...document.querySelectorAll('#plot-errors .annotation-text')].map(t => t.textContent)")
            assert [any(title.startswith(name) for title in titles) for name in names] == [True] * 3
            assert page.run("document.querySelectorAll('#plot-errors .shapelayer path').length") == 1
            # Around the diagonal, too, as wide as the log's clock is coarse.
            apart = "(([low, high]) => Math.max(...Array.from(high.y, (y, n) => y - low.y[n])))"
            assert page.run(f"{apart}(document.getElementById('plot-agreement')._fullData)") == pytest.approx(2.0)
        assert page.complaints == []
