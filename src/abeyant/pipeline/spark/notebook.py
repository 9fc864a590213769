"""In a notebook: a line below each cell that makes Spark work tells how far Spark is, and at last how long it took.

A notebook is a kernel of Jupyter's protocol: Jupyter, VS Code, Colab. It has imported IPython before us; IPython is
never imported here. Spark is lazy, so `resolve` cannot show anything itself: it begins to watch the cells. While a cell
runs, a thread looks five times a second at the jobs that are active, streams' left out, and ends with the cell. A
session of Spark Connect needs no thread: the server tells.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.job_progress import connect_progress_handler, follow_jobs

if TYPE_CHECKING:
    from pyspark import StatusTracker

__all__ = ["notebook_progress", "watch_cells"]


def notebook_progress(on: bool = True) -> None:
    """Show in a notebook, from the next cell on, how far Spark is with a cell's work; or show it no more.

    `pipeline.resolve` and `pipeline.plots` switch it on, unless it was switched off before. It is for the session that
    they are given, and for the active one when called here. Where there is no notebook it does nothing.
    """
    _CELLS.off = not on
    if not on:
        _CELLS.watch(None)
        return
    with suppress(PySparkException):  # without a session, `resolve` will know one
        watch_cells(SparkSession.active())


def watch_cells(spark: SparkSession) -> None:
    """Watch this session in the cells of the notebook from now on, the running one included, if this is a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None or _CELLS.off:
        return
    _CELLS.listen(shell)
    _CELLS.watch(spark)


class _Line:
    """The line of one cell: it appears with the first task, and stays in its place."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._began = self._last = time.monotonic()
        self._shown = ""

    def tell(self, share: float, tasks: str) -> None:
        """Say how far Spark is."""
        self._last = time.monotonic()
        if self._handle is None:
            self._began = self._last
        self._show(f"Spark: {tasks}, {self._seconds()}", f'<progress value="{share:.3f}" max="1"></progress>')

    def end(self) -> None:
        """Say how long it took, if there was anything to say."""
        if self._handle is not None:
            self._show(f"Spark: {self._seconds()}")

    def _seconds(self) -> str:
        return f"{self._last - self._began:.0f} s"

    def _show(self, words: str, bar: str = "") -> None:
        if words == self._shown:
            return
        self._shown = words
        look = "display:flex;flex-wrap:wrap;align-items:center;gap:0 .6em;font-size:.9em"
        both = {"text/plain": words, "text/html": f'<div style="{look}">{bar}<span>{words}</span></div>'}
        if self._handle is None:
            ipython: Any = sys.modules["IPython"]
            self._handle = ipython.display.display(both, raw=True, display_id=True)
        else:
            self._handle.update(both, raw=True)


class _Cells:
    """The cells of this kernel, and the session that is watched while they run."""

    def __init__(self) -> None:
        self.off = False
        self._shell: Any = None
        self._spark: SparkSession | None = None
        self._line = _Line()
        self._server: Callable[..., None] | None = None  # what takes the news of one operation of the server
        self._thread: threading.Thread | None = None
        self._done = threading.Event()

    def listen(self, shell: Any) -> None:
        """Be told when a cell begins and ends."""
        if shell is self._shell:
            return
        self._shell = shell
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def watch(self, spark: SparkSession | None) -> None:
        """Watch this session, and no other any more."""
        if spark is self._spark:
            return
        self._end()
        if self._spark is not None and is_connect(self._spark):
            self._spark.removeProgressHandler(self._server_told)  # type: ignore[arg-type]
        self._spark = spark
        if spark is not None and is_connect(spark):
            spark.registerProgressHandler(self._server_told)  # type: ignore[arg-type]
        self._begin()

    def _begin(self, *_: object) -> None:
        if self._spark is None or self._thread is not None:
            return
        self._line = _Line()
        if is_connect(self._spark):
            return
        self._done = threading.Event()
        follow = partial(follow_jobs, self._spark, partial(_active_jobs, self._spark), self._line.tell, self._done)
        # In the context of the cell, by which the kernel knows below which cell to show something.
        within = contextvars.copy_context().run
        self._thread = threading.Thread(target=within, args=(follow,), name="abeyant-notebook", daemon=True)
        self._thread.start()

    def _end(self, *_: object) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
        self._server = None
        self._line.end()
        self._line = _Line()

    def _server_told(self, *, done: bool, **news: Any) -> None:
        if self._server is None:
            self._server = connect_progress_handler(self._line.tell)
        self._server(**news)
        if done:
            self._server = None


def _active_jobs(spark: SparkSession, tracker: StatusTracker) -> Iterable[int]:
    """Return the jobs that run now but for those of streams, which go on whatever the cell does."""
    jobs = set(tracker.getActiveJobsIds())
    for query in spark.streams.active if jobs else ():
        jobs.difference_update(tracker.getJobIdsForGroup(str(query.runId)))
    return jobs


_CELLS: Final = _Cells()
