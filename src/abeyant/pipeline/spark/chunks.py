"""What map sides share in Spark's Python workers: batches joined to chunks, and modules hidden from the collector."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

__all__ = ["CHUNK_BYTES", "chunks", "cut", "freeze_imports", "gathered"]

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


_frozen = False


def freeze_imports() -> None:
    """Let the collector pass over what this worker has imported; the first call counts, and only in a worker.

    A worker that is used again collects all garbage after each task (`pyspark/daemon.py`): 25 ms over the modules of
    PySpark, Arrow and NumPy, of which nothing is garbage. The collector stays on for all that comes.
    """
    global _frozen
    if not _frozen and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        _frozen = True
