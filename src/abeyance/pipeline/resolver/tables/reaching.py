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
from abeyance.pipeline.resolver.tables.packing import EVENTS, KINDS, OPERATION
from abeyance.pipeline.spark.chunks import chunks

__all__ = ["REACHED", "first_reached"]

REACHED: Final = (
    "instance string, op_id string, kind string, start_us long, deadline_us long, combine int, reached long"
)

_KEPT: Final = ("instance", "op_id", "kind", "start_us", "deadline_us", "combine")
_ASKED: Final = ("place", "identity", "required", "start_us", "deadline_us")


def first_reached(
    batches: Iterable[pa.RecordBatch], deadline: Literal["inclusive", "exclusive"]
) -> Iterator[pa.RecordBatch]:
    """PACKED, sorted by `order` -> the operations, and when they were `reached` in their time, or null."""
    for _, rows in groupby(_unpacked(batches), key=lambda row: row[0] // KINDS):
        events = b""
        for are_events, values in groupby(rows, key=lambda row: row[0] % KINDS == EVENTS):
            if are_events:
                events = b"".join(packed for _, packed in values)
                continue
            staircases = Staircases(events)
            for operations in chunks(pa.ipc.read_record_batch(packed, OPERATION) for _, packed in values):
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
    kept = [operations.column(name) for name in _KEPT]
    return pa.RecordBatch.from_arrays([*kept, pa.array(reached, mask=reached == NEVER)], [*_KEPT, "reached"])
