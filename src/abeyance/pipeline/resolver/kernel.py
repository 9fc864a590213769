"""The two kernels that run in Spark's Python workers, on Arrow batches.

Events are packed on the map side: a row each, four 64-bit integers, joined into one binary value for each *shard* and
chunk. So Spark shuffles thousands of values in place of millions of rows. Operations travel as rows. Partitioned by
shard and sorted by `order`, a task sees shard after shard, the events of each before its operations.

Memory: a chunk of events on the map side; on the reduce side the events of one shard, and a batch of operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from abeyance.engine.resolve import NEVER, Staircases

__all__ = ["PACKED", "REACHED", "SHARDS", "first_reached", "pack_events"]

SHARDS: Final = 1024
"""Shards are many, so that the events of one are few: 24 MB of a billion events."""

PACKED: Final = "order long, events binary"
REACHED: Final = (
    "instance string, op_id string, kind string, start_us long, deadline_us long, combine int, reached long"
)

_CHUNK: Final = 1 << 18


def pack_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(place, identity, progress, at_us) -> (order, events): all the events of one shard in a chunk as one value."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield _packed(waiting, rows)
            waiting, rows = [], 0
    if rows:
        yield _packed(waiting, rows)


def _packed(batches: list[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    table = np.empty((rows, 4), np.int64)
    begin = 0
    for batch in batches:
        end = begin + batch.num_rows
        for position in range(4):
            table[begin:end, position] = batch.column(position).to_numpy()
        begin = end
    shard = (table[:, 0] % SHARDS).astype(np.uint16)
    order = np.argsort(shard, kind="stable")  # of 16 bits: a radix sort
    shards, firsts = np.unique(shard[order], return_index=True)
    offsets = np.append(firsts, rows).astype(np.int32) * table.strides[0]
    values = pa.py_buffer(np.ascontiguousarray(table[order]))
    events = pa.BinaryArray.from_buffers(pa.binary(), len(shards), [None, pa.py_buffer(offsets), values])
    return pa.record_batch({"order": pa.array(shards.astype(np.int64) * 2), "events": events})


def first_reached(
    batches: Iterable[pa.RecordBatch], deadline: Literal["inclusive", "exclusive"]
) -> Iterator[pa.RecordBatch]:
    """Sorted by `order`: packed events (2 * shard) and operations (2 * shard + 1) -> the operations with `reached`."""
    shard = -1
    events = bytearray()
    staircases: Staircases | None = None
    for batch in batches:
        order = batch.column("order").to_numpy()
        operations = batch.filter(pa.array(order & 1, pa.int64()).cast(pa.bool_()))
        place, identity, required, start, until = (
            operations.column(name).to_numpy() for name in ("place", "identity", "required", "start_us", "deadline_us")
        )
        reached = np.empty(operations.num_rows, np.int64)
        done = 0
        edges = [0, *(np.flatnonzero(order[1:] != order[:-1]) + 1).tolist(), len(order)]
        for begin, end in pairwise(edges):
            if begin == end:
                continue
            now, is_operations = divmod(int(order[begin]), 2)
            if now != shard:
                shard = now
                events.clear()
                staircases = None
            if not is_operations:
                for value in batch.column("events").slice(begin, end - begin):
                    events += value.as_buffer()
                continue
            if staircases is None:
                staircases = Staircases(events)
                events = bytearray()
            some = slice(done, done + end - begin)
            staircases.first_reached(
                place[some],
                identity[some],
                required[some],
                start[some],
                until[some],
                reached[some].data,
                deadline=deadline,
            )
            done = some.stop
        if done:
            kept = [operations.column(name) for name in _KEPT]
            yield pa.RecordBatch.from_arrays([*kept, pa.array(reached, mask=reached == NEVER)], [*_KEPT, "reached"])


_KEPT: Final = tuple(column.split()[0] for column in REACHED.split(", "))[:-1]
