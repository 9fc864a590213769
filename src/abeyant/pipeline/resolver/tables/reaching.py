"""The reduce side, on Arrow batches in Spark's Python workers: packed rows in, operations out, each with its answer.

Partitioned by shard and sorted by `order`, a task sees shard after shard, the events of each before its operations.

Memory: the steps of one shard, twice while its staircases are built, and a chunk of operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from abeyant.kernels.resolve import NEVER, Staircases
from abeyant.pipeline.resolver.tables.packing import (
    ALONE,
    COMBINED,
    KINDS,
    TEXTS,
    WatchNumbers,
    unpacked_events,
    unpacked_operations,
)
from abeyant.pipeline.spark.chunks import freeze_imports

__all__ = ["REACHED", "first_reached"]

_REACHED: Final = "instance string, op_id string, kind string, start_us long, deadline_us long"
REACHED: Final = {
    ALONE: f"{_REACHED}, reached long",
    COMBINED: f"{_REACHED}, any_of boolean, version array<string>, reached long",
}

_CHUNK_BYTES: Final = 1 << 25


def first_reached(
    batches: Iterable[pa.RecordBatch], kind: int, deadline: Literal["inclusive", "exclusive"]
) -> Iterator[pa.RecordBatch]:
    """PACKED, sorted by `order`, with operations of one kind -> `REACHED`: when each was, in its time, or null."""
    freeze_imports()
    for shard, runs in groupby(_runs(batches), key=lambda run: run.order // KINDS):
        staircases = Staircases(b"")
        for are_events, some in groupby(runs, key=lambda run: run.order % KINDS != kind):
            if are_events:
                packed = [run.packed for run in some]
                staircases = Staircases(unpacked_events(packed[0] if len(packed) == 1 else b"".join(packed), shard))
                continue
            for values in _together(value for run in some for value in run.values()):
                numbers, texts = unpacked_operations(values, kind, shard)
                yield _answered(staircases, numbers, texts, deadline)


class _Run(NamedTuple):
    """Values of one `order`, one after the other."""

    order: int
    packed: memoryview
    ends: list[int]

    def values(self) -> Iterator[memoryview]:
        return (self.packed[begin:end] for begin, end in pairwise((0, *self.ends)))


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[_Run]:
    cuts: set[int] = set()
    for batch in batches:
        cuts.update(batch.column("cuts").unique().to_pylist())
        if len(cuts) > 1:
            raise RuntimeError("the sample of hot keys was read twice and differs: the input is not the same twice")
        order, packed = batch.column("order").to_numpy(), batch.column("packed")
        _, offsets, data = packed.buffers()
        # Twice as wide by Spark's setting `spark.sql.execution.arrow.useLargeVarTypes`.
        width = np.dtype(np.int64 if pa.types.is_large_binary(packed.type) else np.int32)
        ends = np.frombuffer(offsets, width, len(packed) + 1, width.itemsize * packed.offset)
        firsts = np.flatnonzero(np.diff(order, prepend=-1))
        for first, end in zip(firsts.tolist(), (*firsts[1:].tolist(), len(order)), strict=True):
            begin = int(ends[first])
            values = memoryview(data)[begin : int(ends[end])] if data is not None else memoryview(b"")
            yield _Run(int(order[first]), values, (ends[first + 1 : end + 1] - begin).tolist())


def _together(values: Iterable[memoryview]) -> Iterator[list[memoryview]]:
    """Yield values in chunks."""
    waiting: list[memoryview] = []
    size = 0
    for value in values:
        waiting.append(value)
        size += len(value)
        if size >= _CHUNK_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _answered(
    staircases: Staircases, numbers: WatchNumbers, texts: pa.RecordBatch, deadline: Literal["inclusive", "exclusive"]
) -> pa.RecordBatch:
    place, identity, required, start_us, deadline_us = numbers
    reached = np.empty(len(place), np.int64)
    staircases.first_reached(
        place.data,
        identity.data,
        required.data,
        start_us.data,
        deadline_us.data,
        reached.data,
        deadline=deadline,
    )
    columns = {
        **{name: texts.column(name) for name in TEXTS[ALONE]},
        "start_us": pa.array(start_us),
        "deadline_us": pa.array(deadline_us),
        **{name: texts.column(name) for name in texts.schema.names if name not in TEXTS[ALONE]},
        "reached": pa.array(reached, mask=reached == NEVER),
    }
    return pa.record_batch(columns)
