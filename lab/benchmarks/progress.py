"""How far a run is, and about how much longer it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from lab import peers
from lab.benchmarks import wording
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.plan import Task

WIDTH = 24  # of the bar, in characters


class Progress:
    """A line a measurement and, where somebody looks on, a bar below them."""

    def __init__(self, tasks: Sequence[Task], live: bool | None = None) -> None:
        self._live = sys.stdout.isatty() if live is None else live
        self._count = len(tasks)
        self._number = 0
        self._all = sum(map(_weight, tasks))
        self._done = 0.0
        self._began = time.monotonic()

    def begin(self, task: Task) -> None:
        """A measurement begins."""
        self._number += 1
        self._what = f"[{self._number:>{len(str(self._count))}}/{self._count}] {described(task):<72} "
        if self._live:
            print(f"{self._what}\n{self._bar()}", end="\r\033[A", flush=True)
        else:
            print(self._what, end="", flush=True)

    def end(self, task: Task, said: str) -> None:
        """It has ended."""
        self._done += _weight(task)
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        clear = "\033[J" if self._live else ""
        print(f"{clear}{self._what if self._live else ''}{said} {minutes:>3}:{seconds:02}", flush=True)

    def _bar(self) -> str:
        share = self._done / self._all
        filled = round(share * WIDTH)
        left = ""
        if self._done:
            minutes = (time.monotonic() - self._began) * (self._all - self._done) / self._done / 60
            left = f", about {minutes:.0f} min left" if minutes >= 1 else ", less than a minute left"
        return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {share:.0%}{left}"


def described(task: Task) -> str:
    """A measurement in words."""
    row = ROWS[task.row]
    return f"{row.title}, {wording.size(task.size)} {row.size_of}, {peers.LABELS[task.rival]}"


def _weight(task: Task) -> float:
    """About how long a measurement takes, in no unit. It is the large sizes that take long."""
    storm = task.row in ("expiry", "lateness") or task.row.startswith("stall_")
    return (1 + task.size / 250_000) * (3 if storm else 1)
