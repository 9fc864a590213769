"""What Spark is doing, shown while it works: a bar on a terminal, elsewhere lines every few seconds, or nothing.

All of it goes to the error stream: the standard output is for results.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from abeyance.pipeline.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Steps"]

_POLL_SECONDS: Final = 0.2
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
    """A line every few seconds, so that whoever waits can tell long from stuck."""
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
    if is_connect(spark):
        _watch_server(bar, shown, spark, done)
        return
    tracker = spark.sparkContext.statusTracker()
    earlier = set(tracker.getJobIdsForGroup(group))
    far = Far()
    while not done.wait(_POLL_SECONDS):
        try:
            for job in set(tracker.getJobIdsForGroup(group)) - earlier:
                found = tracker.getJobInfo(job)
                for stage in found.stageIds if found is not None else ():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        far.saw(stage, info.numCompletedTasks, info.numTasks)
        except Exception:  # noqa: BLE001 - a bar must never end the work it shows, whatever Py4J meets
            return
        share, tasks = far.told()
        if tasks:
            bar.update(shown, total=1.0, completed=share, tasks=tasks)


def _watch_server(bar: Progress, shown: TaskID, spark: SparkSession, done: threading.Event) -> None:
    """Show what the server of Spark Connect tells of this session's stages, until told to stop."""
    far = Far()

    def tell(stages: Iterable[Any] | None, **_: object) -> None:
        for stage in stages or ():
            far.saw(stage.stage_id, stage.num_completed_tasks, stage.num_tasks)
        share, tasks = far.told()
        if tasks:
            bar.update(shown, total=1.0, completed=share, tasks=tasks)

    spark.registerProgressHandler(tell)  # type: ignore[arg-type]
    done.wait()
    spark.removeProgressHandler(tell)  # type: ignore[arg-type]


class Far:
    """How far some stages of Spark are. What it tells never goes back.

    Spark plans as it goes, so there is more to do with each new stage; it may run a stage again; and it forgets old
    ones, so what was once seen is kept.
    """

    def __init__(self) -> None:
        self._stages: dict[int, tuple[int, int]] = {}
        self._share = 0.0

    def saw(self, stage: int, completed: int, total: int) -> None:
        """Note how many of a stage's tasks are done."""
        before = self._stages.get(stage, (0, 0))
        self._stages[stage] = (max(completed, before[0]), max(total, before[1]))

    def told(self) -> tuple[float, str]:
        """Return the share that is done, and in words how many tasks; no words before there are any."""
        completed, total = (
            (sum(column) for column in zip(*self._stages.values(), strict=True)) if self._stages else (0, 0)
        )
        if not total:
            return 0.0, ""
        self._share = max(self._share, completed / total)
        return self._share, f"{completed}/{total} tasks"
