"""Arrow batches joined to such as are worth packing, for the map sides that run in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

__all__ = ["chunks"]

_BYTES: Final = 1 << 26


def chunks(batches: Iterable[pa.RecordBatch], least_rows: int = 1 << 18) -> Iterator[pa.RecordBatch]:
    """Join batches until they have so many rows, or 64 MB; no chunk is empty. Memory: a chunk, twice."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= least_rows or size >= _BYTES:
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield pa.concat_batches(waiting)
