"""Show progress on the error stream: a bar on a terminal, elsewhere a line every few seconds, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.job_progress import connect_progress_handler, follow_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Steps"]

_SILENT_SECONDS: Final = 3.0  # where there is no bar


class Steps:
    """The progress of a command's steps; `quiet` shows nothing."""

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console if console is not None else Console(stderr=True)
        self._quiet = quiet

    @contextmanager
    def step(self, what: str, spark: SparkSession | None = None, group: str | None = None) -> Iterator[None]:
        """Show `what` while the block runs; with a job group, how many of its Spark tasks are done."""
        if self._quiet:
            yield
            return
        if not self._console.is_terminal:
            # A log file or a pipe: print the line first, in case the work never ends.
            print(f"{what} ...", file=sys.stderr, flush=True)
            with _heartbeat(what):
                yield
            return
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[tasks]}"),
            TimeElapsedColumn(),
            console=self._console,
        )
        with bar:
            task_id = bar.add_task(what, total=None, tasks="")
            done = threading.Event()
            watcher = None
            if spark is not None and group is not None:
                watcher = threading.Thread(target=_watch, args=(bar, task_id, spark, group, done), daemon=True)
                watcher.start()

            def stop() -> None:
                done.set()
                if watcher is not None:
                    watcher.join()

            try:
                yield
                stop()
                # Not the last count: Spark skips stages whose result it still has, so their tasks never finish.
                bar.update(task_id, total=1, completed=1, tasks="")
            finally:
                stop()


@contextmanager
def _heartbeat(description: str) -> Iterator[None]:
    """Print a line every few seconds while the block runs."""
    start = time.monotonic()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_SILENT_SECONDS):
            print(f"{description} ... {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _watch(bar: Progress, task_id: TaskID, spark: SparkSession, group: str, done: threading.Event) -> None:
    """Show the tasks of the group's jobs that start from now on, until `done` is set."""

    def report(share: float, tasks: str) -> None:
        bar.update(task_id, total=1.0, completed=share, tasks=tasks)

    if is_connect(spark):
        handler = connect_progress_handler(report)
        spark.registerProgressHandler(handler)  # type: ignore[arg-type]
        done.wait()
        spark.removeProgressHandler(handler)  # type: ignore[arg-type]
        return
    earlier = set(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    follow_jobs(spark, lambda tracker: set(tracker.getJobIdsForGroup(group)) - earlier, report, done)
