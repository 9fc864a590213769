"""How pytest-xdist's workers share the tests, so that no processor waits.

A file's tests stay with one worker, for what its fixtures have made. There is one worker more than processors, because
tests wait: for a clock, for a process, for a client's time-out; and another where the slow ones run, which wait most.
From the third on these never start Spark: another session would cost more than it gives. The others begin with Spark's
files, the longest first, because a long file that begins last keeps all waiting.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path, PurePath

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

__all__ = ["Sharing", "from_another_place", "in_order", "workers"]

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
FEWEST = 2
"""Workers with Spark, if there are as many."""


def processors() -> int:
    """How many this process may have."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers(*, slow: bool) -> int:
    """As many as processors, and one; or two, if the slow tests run."""
    return processors() + 1 + slow


def _place(file: PurePath) -> int:
    """The place of a file of tests, relative to their folder, among those with Spark; behind all where it has none."""
    return next((n for n, name in enumerate(WITH_SPARK) if file.is_relative_to(name)), len(WITH_SPARK))


def in_order(files: Iterable[PurePath]) -> dict[PurePath, tuple[int, int]]:
    """Return by what to sort the tests of each file, given the file of each test: those of many tests first."""
    return {file: (_place(file), -count) for file, count in Counter(files).items()}


def from_another_place(folder: Path, number: int, count: int) -> list[Path]:
    """Return all that has tests in the folder, for each of `count` workers from another place on, by size.

    pytest rewrites each file that it has not seen, which takes most of the time to read them. Workers that read them in
    one order would each rewrite all, at the same time; so each finds what others have kept.
    """
    parts = sorted(path for path in folder.iterdir() if path.match("test_*.py") or any(path.rglob("test_*.py")))
    sizes = [sum(file.stat().st_size for file in [part, *part.rglob("*.py")]) for part in parts]
    share = sum(sizes) * number / count
    first = next((place for place, before in enumerate(accumulate(sizes, initial=0)) if before >= share), 0)
    return parts[first:] + parts[:first]


class Sharing(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """xdist's own by files, but workers without Spark take from the end, and end when nothing is there for them."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        with_spark = max(FEWEST, min(processors(), self.numnodes - 1))
        if int(node.gateway.id.removeprefix("gw")) >= with_spark:
            light = (file for file in reversed(self.workqueue) if not self._with_spark(file))
            file = next(light, None)
            if file is None:
                node.shutdown()
                return
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _with_spark(self, file: str) -> bool:
        return _place(PurePath(file.removeprefix("tests/"))) < len(WITH_SPARK)
