"""What Spark is doing, shown while it works: a bar on a terminal, elsewhere lines every few seconds, or nothing.

All of it goes to the error stream: the standard output is for results.
"""

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
    """Shows the steps of one long piece of work; `quiet` shows nothing."""

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
            # A log file or a pipe: the line has to be there before the work, in case the work never ends.
            print(f"{what} ...", file=sys.stderr, flush=True)
            with _sign_of_life(what):
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
            shown = bar.add_task(what, total=None, tasks="")
            done = threading.Event()
            watcher = None
            if spark is not None and group is not None:
                watcher = threading.Thread(target=_watch, args=(bar, shown, spark, group, done), daemon=True)
                watcher.start()

            def stop() -> None:
                done.set()
                if watcher is not None:
                    watcher.join()

            try:
                yield
                stop()
                # Not the last count: Spark skips stages whose result it still has, and their tasks are never done.
                bar.update(shown, total=1, completed=1, tasks="")
            finally:
                stop()


@contextmanager
def _sign_of_life(what: str) -> Iterator[None]:
    """Yield a line every few seconds, so that whoever waits can tell long from stuck."""
    began = time.monotonic()
    done = threading.Event()

    def tell() -> None:
        while not done.wait(_SILENT_SECONDS):
            print(f"{what} ... {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _watch(bar: Progress, shown: TaskID, spark: SparkSession, group: str, done: threading.Event) -> None:
    """Count the tasks of the group's stages until told to stop; only jobs begun since then are counted."""

    def told(share: float, tasks: str) -> None:
        bar.update(shown, total=1.0, completed=share, tasks=tasks)

    if is_connect(spark):
        tell = connect_progress_handler(told)
        spark.registerProgressHandler(tell)  # type: ignore[arg-type]
        done.wait()
        spark.removeProgressHandler(tell)  # type: ignore[arg-type]
        return
    earlier = set(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    follow_jobs(spark, lambda tracker: set(tracker.getJobIdsForGroup(group)) - earlier, told, done)
