"""Waits that are counted and ranked, from columns of every type that Spark hands over."""

from __future__ import annotations

import pyarrow as pa
import pytest

from abeyant.pipeline.analysis.incidents import suffering
from abeyant.pipeline.analysis.keys import KEY, with_keys
from abeyant.pipeline.analysis.ranked import count_waits, rank, with_all_instances
from abeyant.pipeline.analysis.summary import summary_rows

TYPES = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]  # large: with Spark's useLargeVarTypes


@pytest.mark.parametrize("text", TYPES, ids=str)
def test_waits_are_ranked_whatever_the_type_of_texts(text: pa.DataType) -> None:
    columns = {"instance": ["b1", "b2", "b1"], "kind": ["PRODUCE"] * 3, "outcome": ["expired", None, "completed"]}
    table = pa.table({name: pa.array(column, text) for name, column in columns.items()})
    table = table.append_column("wait_us", pa.array([5000, 7000, 0]))
    counts = with_all_instances(count_waits(table, ("instance", "kind")))
    rows = {row["instance"]: row for row in summary_rows(rank(counts, ("instance", "kind"))).to_pylist()}
    assert {name: row["operations"] for name, row in rows.items()} == {"b1": 2, "b2": 1, "*": 3}
    assert [rows["*"][name] for name in ("waited", "completed", "expired", "unknown", "max_ms")] == [2, 1, 1, 1, 7.0]


@pytest.mark.parametrize("text", TYPES, ids=str)
def test_what_suffers_is_found_whatever_the_type_of_texts(text: pa.DataType) -> None:
    table = pa.table(
        {
            **{name: pa.array([value] * 2, text) for name, value in (("instance", "b1"), ("kind", "PRODUCE"))},
            "outcome": pa.array(["expired", "completed"], text),
            "client_id": pa.array(["app", None], text),
            "keys": pa.ListArray.from_arrays([0, 1, 3], pa.array(["t-0", "t-0", "t-1"], text)),
            "start_us": [0, 1_000_000],
            "wait_us": [30_000_000, 10],
            "error_code": pa.array([7, 0], pa.int32()),
            "size_bytes": pa.array([1, 1], pa.int64()),
            **{name: [0.0, 0.0] for name in ("local_ms", "send_ms", "throttle_ms")},
        }
    )
    found = suffering(table, {"PRODUCE": 1e9}).to_pylist()
    assert [(row["trouble"], row["instance"], row["key"], row["operations"], row["expired"]) for row in found] == [
        ("waited", "b1", None, 1, 1),
        ("waited", None, "t-0", 1, None),
    ]
    keys = count_waits(with_keys(table), KEY)
    assert sorted(keys["key"].to_pylist()) == ["t-0", "t-0", "t-1"]
