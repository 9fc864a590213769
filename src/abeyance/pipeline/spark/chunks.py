"""Arrow batches joined to such as are worth packing, for the map sides that run in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

__all__ = ["chunks", "gathered"]

_LEAST_ROWS: Final = 1 << 18

_BYTES: Final = 1 << 26


def chunks(batches: Iterable[pa.RecordBatch], least_rows: int = _LEAST_ROWS) -> Iterator[pa.RecordBatch]:
    """Join batches until they have so many rows, or 64 MB; no chunk is empty. Memory: a chunk, twice."""
    return map(pa.concat_batches, gathered(batches, least_rows))


def gathered(batches: Iterable[pa.RecordBatch], least_rows: int = _LEAST_ROWS) -> Iterator[list[pa.RecordBatch]]:
    """Gather the batches of a chunk, for one who joins them himself; none is empty."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= least_rows or size >= _BYTES:
            yield waiting
            waiting, rows, size = [], 0, 0
    if rows:
        yield waiting
