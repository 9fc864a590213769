"""Arrow batches joined to such as are worth packing, for the map sides that run in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["CHUNK_BYTES", "chunks", "cut", "gathered"]

CHUNK_BYTES: Final = 1 << 26
_LEAST_ROWS: Final = 1 << 18


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
        if rows >= least_rows or size >= CHUNK_BYTES:
            yield waiting
            waiting, rows, size = [], 0, 0
    if rows:
        yield waiting


def cut(sizes: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut rows of so many bytes each in runs of 64 MB, or a row that is longer: where each begins and ends."""
    run = np.cumsum(sizes) // CHUNK_BYTES
    firsts = np.flatnonzero(np.diff(run, prepend=-1))
    return list(pairwise([*firsts.tolist(), len(sizes)]))
