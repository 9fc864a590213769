"""Pack the tables' rows by shard, and marks for all shards: the map side, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.resolver.streams.clock import Mark
from abeyant.pipeline.resolver.streams.columns import Longs, column
from abeyant.pipeline.resolver.streams.layout import (
    EVENTS,
    REJECTED,
    WATCHES,
    RowKind,
    as_schema,
    joined,
    mark_to,
    pack_rows,
    packed_rows,
)
from abeyant.pipeline.spark.chunks import chunks, freeze_imports

__all__ = ["Read", "pack", "pack_marks"]

_CHUNK: Final = 1 << 17

_TABLES: Final = {"operations": (RowKind.WATCHES, WATCHES, "start"), "events": (RowKind.EVENTS, EVENTS, "at")}


class Read(NamedTuple):
    """Rows to send to shards, for each row the hash that chooses its shard, and rejected rows (`layout.REJECTED`)."""

    rows: pa.RecordBatch
    places: Longs
    rejected: pa.RecordBatch


def pack(
    batches: Iterable[pa.RecordBatch],
    table: Literal["operations", "events"],
    shards: int,
    read: Callable[[pa.RecordBatch], Read] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Pack rows of `layout.WATCHES` or `layout.EVENTS`, with `reason` and `row`, into `layout.PACKED`.

    `read` converts valid rows. Rows with a `reason` are rejected; any shard passes them on. Every shard gets a mark in
    every batch, even without rows. Memory: two copies of a chunk.
    """
    freeze_imports()
    kind, schema, time = _TABLES[table]
    if read is None:
        read = partial(_as_they_are, schema=schema)
    least, greatest, rows = [], [], 0
    for chunk in chunks(batches, _CHUNK):
        valid = chunk.filter(pc.is_null(chunk.column("reason")))
        if valid.num_rows:
            converted = read(valid)
            if converted.rejected.num_rows:
                yield from packed_rows([(rows % shards, RowKind.REJECTED, pack_rows(converted.rejected))])
            if converted.rows.num_rows:
                times = column(converted.rows, time)
                least.append(int(times.min()))
                greatest.append(int(times.max()))
                yield from packed_rows(_by_shard(converted, kind, shards))
        if valid.num_rows < chunk.num_rows:
            yield from packed_rows([(rows % shards, RowKind.REJECTED, pack_rows(_invalid(chunk, table)))])
        rows += chunk.num_rows
    mark = Mark(table, min(least), max(greatest)) if least else Mark("tick", 0, 0)
    yield from _to_all(mark, shards)


def pack_marks(
    batches: Iterable[pa.RecordBatch], source: Literal["tick", "end"], shards: int
) -> Iterator[pa.RecordBatch]:
    """Yield one mark for each shard if `source`, the ticks or the end of input, has rows in this batch."""
    if sum(batch.num_rows for batch in batches):  # a sum, because all that Spark sends has to be read
        yield from _to_all(Mark(source, 0, 0), shards)


def _as_they_are(valid: pa.RecordBatch, schema: pa.Schema) -> Read:
    return Read(as_schema(valid.select(schema.names), schema), column(valid, "place"), joined([], REJECTED))


def _by_shard(read: Read, kind: RowKind, shards: int) -> Iterator[tuple[int, RowKind, pa.Buffer]]:
    shard = (read.places % shards).astype(np.uint16)
    order = np.argsort(shard, kind="stable")  # of 16 bits: a radix sort
    rows = read.rows.take(pa.array(order))
    edges = np.searchsorted(shard[order], np.arange(shards + 1)).tolist()
    for number, (begin, end) in enumerate(pairwise(edges)):
        if begin < end:
            yield number, kind, pack_rows(rows.slice(begin, end - begin))


def _invalid(chunk: pa.RecordBatch, table: str) -> pa.RecordBatch:
    rows = chunk.filter(pc.is_valid(chunk.column("reason")))
    columns = [pa.array([table] * rows.num_rows), rows.column("reason"), rows.column("row")]
    return as_schema(pa.RecordBatch.from_arrays(columns, REJECTED.names), REJECTED)


def _to_all(mark: Mark, shards: int) -> Iterator[pa.RecordBatch]:
    payload = mark_to(mark)
    return packed_rows((shard, RowKind.MARK, payload) for shard in range(shards))
