"""Helpers of Python workers: join batches to chunks, and exempt imported modules from garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

__all__ = ["CHUNK_BYTES", "chunk_batches", "chunks", "cut", "freeze_imports"]

CHUNK_BYTES: Final = 1 << 26
_LEAST_ROWS: Final = 1 << 18


def chunks(batches: Iterable[pa.RecordBatch], least_rows: int = _LEAST_ROWS) -> Iterator[pa.RecordBatch]:
    """Join batches into chunks of at least `least_rows` rows or 64 MB; none is empty. Memory: two copies of a chunk."""
    return map(pa.concat_batches, chunk_batches(batches, least_rows))


def chunk_batches(batches: Iterable[pa.RecordBatch], least_rows: int = _LEAST_ROWS) -> Iterator[list[pa.RecordBatch]]:
    """Yield a list of batches for each chunk, for callers that join the batches themselves; no chunk is empty."""
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
    """Divide rows, given their sizes in bytes, into runs of about 64 MB, or more for a longer row.

    Return (begin, end) of each run.
    """
    run = np.cumsum(sizes) // CHUNK_BYTES
    firsts = np.flatnonzero(np.diff(run, prepend=-1))
    return list(pairwise([*firsts.tolist(), len(sizes)]))


_frozen = False


def freeze_imports() -> None:
    """Exempt the modules that this worker has imported from garbage collection. Only the first call in a worker acts.

    A reused worker collects garbage after each task (`pyspark/daemon.py`): 25 ms over the modules of PySpark, Arrow and
    NumPy, which hold no garbage. The collector stays on for all later objects.
    """
    global _frozen
    if not _frozen and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        _frozen = True
