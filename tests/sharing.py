"""How pytest-xdist's workers share the tests, so that no processor waits.

A file's tests stay with one worker, for what its fixtures have made. There is one worker more than processors, because
tests wait: for a clock, for a process, for a client's time-out. The last of three or more never starts Spark: its tests
are those that wait most, and another session would cost more than it gives. The others begin with Spark's files, the
longest first, because a long file that begins last keeps all waiting.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

__all__ = ["Sharing", "in_order", "workers"]

# The longest first. Those of commands start a JVM for many a test.
WITH_SPARK = (
    "pipeline/commands",
    "test_docs.py",
    "pipeline/spark",
    "lab/test_runner.py",
    "questions",
    "pipeline",
    "metrics/test_analysis.py",
    "broker/test_full_circle.py",
    "test_doc_examples.py",
    "test_former_name.py",
    "test_ending.py",
)
FEWEST = 3
"""Workers of which one can do without Spark."""


def workers() -> int:
    """As many as processors, and one."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return there + 1


def _place(file: PurePath) -> int:
    """The place of a file of tests, relative to their folder, among those with Spark; behind all where it has none."""
    return next((n for n, name in enumerate(WITH_SPARK) if file.is_relative_to(name)), len(WITH_SPARK))


def in_order(files: Iterable[PurePath]) -> dict[PurePath, tuple[int, int]]:
    """Return by what to sort the tests of each file, given the file of each test: those of many tests first."""
    return {file: (_place(file), -count) for file, count in Counter(files).items()}


class Sharing(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """xdist's own by files, but the worker without Spark takes from the end, and ends when nothing is there for it."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.numnodes >= FEWEST and node.gateway.id == f"gw{self.numnodes - 1}":
            light = (file for file in reversed(self.workqueue) if not self._with_spark(file))
            file = next(light, None)
            if file is None:
                node.shutdown()
                return
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _with_spark(self, file: str) -> bool:
        return _place(PurePath(file.removeprefix("tests/"))) < len(WITH_SPARK)
