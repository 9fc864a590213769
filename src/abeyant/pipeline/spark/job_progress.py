"""How far Spark is with its work, asked of it while it works. Who asks shows it: a terminal, or a notebook."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

__all__ = ["JobProgress", "ProgressCallback", "connect_progress_handler", "follow_jobs"]

_POLL_SECONDS: Final = 0.2
_IDLE_POLLS: Final = 5

ProgressCallback = Callable[[float, str], None]
"""Takes the share that is done, and in words how many tasks."""


class JobProgress:
    """How far some stages of Spark are. What it tells never goes back.

    Spark plans as it goes, so there is more to do with each new stage; it may run a stage again; and it forgets old
    ones, so what was once seen is kept.
    """

    def __init__(self) -> None:
        self._stages: dict[int, tuple[int, int]] = {}
        self._share = 0.0

    def update(self, stage: int, completed: int, total: int) -> None:
        """Note how many of a stage's tasks are done."""
        before = self._stages.get(stage, (0, 0))
        self._stages[stage] = (max(completed, before[0]), max(total, before[1]))

    def state(self) -> tuple[float, str]:
        """Return the share that is done, and in words how many tasks; no words before there are any."""
        completed, total = (
            (sum(column) for column in zip(*self._stages.values(), strict=True)) if self._stages else (0, 0)
        )
        if not total:
            return 0.0, ""
        self._share = max(self._share, completed / total)
        return self._share, f"{completed}/{total} tasks"


def follow_jobs(
    spark: SparkSession, jobs: Callable[[StatusTracker], Iterable[int]], told: ProgressCallback, done: threading.Event
) -> None:
    """Tell of the tasks of the `jobs`, which are asked for anew each time, until told to stop. Not on Spark Connect.

    Counts anew when there were none for a second: what comes then is other work.
    """
    progress, idle = JobProgress(), 0
    while not done.wait(_POLL_SECONDS):
        try:
            tracker = spark.sparkContext.statusTracker()
            now = list(jobs(tracker))
            idle = 0 if now else idle + 1
            if idle == _IDLE_POLLS:
                progress = JobProgress()
            for job in now:
                found = tracker.getJobInfo(job)
                for stage in found.stageIds if found is not None else ():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        progress.update(stage, info.numCompletedTasks, info.numTasks)
        except Exception:  # noqa: BLE001 - to look must never end the work that is looked at, whatever Py4J meets
            return
        share, tasks = progress.state()
        if tasks and now:
            told(share, tasks)


def connect_progress_handler(told: ProgressCallback) -> Callable[..., None]:
    """Return what a session of Spark Connect takes as a handler of progress."""
    progress = JobProgress()

    def tell(stages: Iterable[Any] | None, **_: object) -> None:
        for stage in stages or ():
            progress.update(stage.stage_id, stage.num_completed_tasks, stage.num_tasks)
        share, tasks = progress.state()
        if tasks:
            told(share, tasks)

    return tell
