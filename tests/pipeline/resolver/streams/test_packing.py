"""What a stream's workers pack, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import pyarrow as pa
import pytest

from abeyant.pipeline.resolver.streams.layout import EVENTS, WATCHES
from abeyant.pipeline.resolver.streams.map_side import pack


def rows_of(schema: pa.Schema, time: str) -> pa.RecordBatch:
    """Rows as Spark sends them: valid ones, and one to be rejected."""
    values = {
        field.name: ["a", "bc", "d"] if field.type == pa.string() else pa.array([1, 2, 3], field.type)
        for field in schema
    }
    values[time] = pa.array([10, 20, 30], pa.int64())
    return pa.RecordBatch.from_pydict(values | {"reason": [None, "no key", None], "row": [None, "{}", None]})


def large(batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds = [pa.large_string() if kind == pa.string() else kind for kind in batch.schema.types]
    return batch.cast(pa.schema(list(zip(batch.schema.names, kinds, strict=True))))


def packed(batches: Iterable[pa.RecordBatch]) -> list[object]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(("table", "schema", "time"), [("operations", WATCHES, "start"), ("events", EVENTS, "at")])
def test_texts_are_packed_alike_however_large_arrow_takes_them_for(
    table: Literal["operations", "events"], schema: pa.Schema, time: str
) -> None:
    """Spark sends large ones where `spark.sql.execution.arrow.useLargeVarTypes` says so; a shard knows one layout."""
    batch = rows_of(schema, time)
    assert large(batch).schema.types != batch.schema.types
    assert packed(pack([large(batch)], table, 2)) == packed(pack([batch], table, 2))
