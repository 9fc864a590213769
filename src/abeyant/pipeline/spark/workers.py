"""What Spark's Python workers do besides their work."""

from __future__ import annotations

import gc

from pyspark import TaskContext

__all__ = ["freeze_imports"]

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
