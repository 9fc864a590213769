"""Show Spark's progress below notebook cells, and at the end of a cell the seconds that Spark took.

A notebook is a process with a kernel of Jupyter's protocol, as in Jupyter, VS Code and Colab. The process has imported
IPython already; this module never imports it. Spark is lazy, so `resolve` itself runs no jobs to show: it only starts
to watch the cells. While a cell runs, a thread polls the active jobs five times a second, except the jobs of streams.
Spark Connect needs no thread: the server sends its progress.
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
    """Show Spark's progress below each cell from the next cell on, or stop showing it.

    `pipeline.resolve` and `pipeline.plots` switch progress on for their session, unless it was switched off before;
    this function switches it on for the active session. Outside a notebook it does nothing.
    """
    _CELLS.off = not on
    if not on:
        _CELLS.watch(None)
        return
    with suppress(PySparkException):  # without a session, `resolve` will watch its own
        watch_cells(SparkSession.active())


def watch_cells(spark: SparkSession) -> None:
    """In a notebook, show this session's progress from now on, the running cell included; elsewhere do nothing."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None or _CELLS.off:
        return
    _CELLS.listen(shell)
    _CELLS.watch(spark)


class _Line:
    """The progress line of one cell, which appears with the first task."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._began = self._last = time.monotonic()
        self._shown = ""

    def report(self, share: float, tasks: str) -> None:
        """Show the text `tasks` and a progress bar for `share`, from 0 to 1."""
        self._last = time.monotonic()
        if self._handle is None:
            self._began = self._last
        self._show(f"Spark: {tasks}, {self._seconds()}", f'<progress value="{share:.3f}" max="1"></progress>')

    def end(self) -> None:
        """Replace the progress bar, if it was shown, by the seconds that the cell's jobs took."""
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
    """The cells of this notebook's kernel, below which the progress of one session is shown while they run."""

    def __init__(self) -> None:
        self.off = False
        self._shell: Any = None
        self._spark: SparkSession | None = None
        self._line = _Line()
        self._server: Callable[..., None] | None = None  # handles the progress of one operation of the Connect server
        self._thread: threading.Thread | None = None
        self._done = threading.Event()

    def listen(self, shell: Any) -> None:
        """Register for the begin and end of cells."""
        if shell is self._shell:
            return
        self._shell = shell
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def watch(self, spark: SparkSession | None) -> None:
        """Watch this session instead of the former session; None: watch no session."""
        if spark is self._spark:
            return
        self._end()
        if self._spark is not None and is_connect(self._spark):
            self._spark.removeProgressHandler(self._on_server_progress)  # type: ignore[arg-type]
        self._spark = spark
        if spark is not None and is_connect(spark):
            spark.registerProgressHandler(self._on_server_progress)  # type: ignore[arg-type]
        self._begin()

    def _begin(self, *_: object) -> None:
        if self._spark is None or self._thread is not None:
            return
        self._line = _Line()
        if is_connect(self._spark):
            return
        self._done = threading.Event()
        follow = partial(follow_jobs, self._spark, partial(_active_jobs, self._spark), self._line.report, self._done)
        # In the cell's context, so that the kernel shows the line below this cell.
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

    def _on_server_progress(self, *, done: bool, **progress: Any) -> None:
        if self._server is None:
            self._server = connect_progress_handler(self._line.report)
        self._server(**progress)
        if done:
            self._server = None


def _active_jobs(spark: SparkSession, tracker: StatusTracker) -> Iterable[int]:
    """Return the ids of the running jobs, without the jobs of streams, which do not belong to the cell."""
    jobs = set(tracker.getActiveJobsIds())
    for query in spark.streams.active if jobs else ():
        jobs.difference_update(tracker.getJobIdsForGroup(str(query.runId)))
    return jobs


_CELLS: Final = _Cells()
