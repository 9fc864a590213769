"""The reduce side, on Arrow batches in Spark's Python workers: packed rows in, operations out, each with its answer.

Partitioned by shard and sorted by `order`, a task sees shard after shard, the events of each before its operations.

Memory: the steps of one shard, twice while its staircases are built, and a chunk of operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from abeyance.engine.resolve import NEVER, Staircases
from abeyance.pipeline.resolver.tables.packing import ALONE, COMBINED, EVENTS, KINDS, SCHEMAS
from abeyance.pipeline.spark.chunks import chunks

__all__ = ["REACHED", "first_reached"]

_REACHED: Final = "instance string, op_id string, kind string, start_us long, deadline_us long"
REACHED: Final = {
    ALONE: f"{_REACHED}, reached long",
    COMBINED: f"{_REACHED}, any_of boolean, version array<string>, reached long",
}

_ASKED: Final = ("place", "identity", "required", "start_us", "deadline_us")
_ONLY_ASKED: Final = _ASKED[:3]


def first_reached(
    batches: Iterable[pa.RecordBatch], kind: int, deadline: Literal["inclusive", "exclusive"]
) -> Iterator[pa.RecordBatch]:
    """PACKED, sorted by `order`, with operations of one kind -> `REACHED`: when each was, in its time, or null."""
    for _, rows in groupby(_unpacked(batches), key=lambda row: row[0] // KINDS):
        events = b""
        for are_events, values in groupby(rows, key=lambda row: row[0] % KINDS == EVENTS):
            if are_events:
                events = b"".join(packed for _, packed in values)
                continue
            staircases = Staircases(events)
            for operations in chunks(pa.ipc.read_record_batch(packed, SCHEMAS[kind]) for _, packed in values):
                yield _answered(staircases, operations, deadline)


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
    cuts: set[int] = set()
    for batch in batches:
        cuts.update(batch.column("cuts").unique().to_pylist())
        if len(cuts) > 1:
            raise RuntimeError("the sample of hot keys was read twice and differs: the input is not the same twice")
        for order, packed in zip(batch.column("order").to_pylist(), batch.column("packed"), strict=True):
            yield order, packed.as_buffer()


def _answered(
    staircases: Staircases, operations: pa.RecordBatch, deadline: Literal["inclusive", "exclusive"]
) -> pa.RecordBatch:
    places, identities, required, starts, deadlines = (operations.column(name).to_numpy() for name in _ASKED)
    reached = np.empty(operations.num_rows, np.int64)
    staircases.first_reached(places, identities, required, starts, deadlines, reached.data, deadline=deadline)
    kept = [name for name in operations.schema.names if name not in _ONLY_ASKED]
    columns = [*(operations.column(name) for name in kept), pa.array(reached, mask=reached == NEVER)]
    return pa.RecordBatch.from_arrays(columns, [*kept, "reached"])
