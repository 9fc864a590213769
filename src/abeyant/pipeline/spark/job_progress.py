"""Poll the progress of Spark jobs, for a terminal or a notebook to show."""

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
"""A function that is called with the share done, from 0 to 1, and a text such as "3/8 tasks"."""


class JobProgress:
    """The progress of some Spark stages, as a share that never falls.

    Spark adds stages while it runs, may run a stage again, and forgets old stages; so earlier counts are kept.
    """

    def __init__(self) -> None:
        self._stages: dict[int, tuple[int, int]] = {}
        self._share = 0.0

    def update(self, stage: int, completed: int, total: int) -> None:
        """Record a stage's number of completed tasks and of all tasks."""
        before = self._stages.get(stage, (0, 0))
        self._stages[stage] = (max(completed, before[0]), max(total, before[1]))

    def state(self) -> tuple[float, str]:
        """Return the share done, from 0 to 1, and a text with the number of tasks, '' while there are no tasks."""
        completed, total = (
            (sum(column) for column in zip(*self._stages.values(), strict=True)) if self._stages else (0, 0)
        )
        if not total:
            return 0.0, ""
        self._share = max(self._share, completed / total)
        return self._share, f"{completed}/{total} tasks"


def follow_jobs(
    spark: SparkSession, jobs: Callable[[StatusTracker], Iterable[int]], report: ProgressCallback, done: threading.Event
) -> None:
    """Report the progress of the jobs whose ids `jobs` returns at each poll, until `done` is set. Not on Spark Connect.

    After a second without jobs, progress starts from 0 again.
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
        except Exception:  # noqa: BLE001 - polling must never end the work, whatever Py4J raises
            return
        share, tasks = progress.state()
        if tasks and now:
            report(share, tasks)


def connect_progress_handler(report: ProgressCallback) -> Callable[..., None]:
    """Return a progress handler for a session of Spark Connect."""
    progress = JobProgress()

    def handle(stages: Iterable[Any] | None, **_: object) -> None:
        for stage in stages or ():
            progress.update(stage.stage_id, stage.num_completed_tasks, stage.num_tasks)
        share, tasks = progress.state()
        if tasks:
            report(share, tasks)

    return handle
