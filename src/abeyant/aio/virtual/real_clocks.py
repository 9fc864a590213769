"""Detect tasks in virtual time that wait for the machine's real clocks.

A loop that retries until `time.monotonic()` has advanced by an hour takes an hour of real time, in which the virtual
clock keeps moving. So after many moves of the virtual clock, watch the reads of real clocks for a while. If one line of
one task reads a real clock at nearly every move, warn; if it still does so much later, report a deadlock.
"""

from __future__ import annotations

import asyncio
import collections
import sys
import time
import warnings
from typing import Final

from abeyant.aio.virtual.diverted import Diverted

_FIRST: Final = 10_000  # moves of the clock before the first watch, which may warn
_LAST: Final = 50_000  # moves before the second one, which may end the block
_WATCHED: Final = 500  # moves per watch
_NEARLY_ALL: Final = 0.99  # share of these moves
_NAMES: Final = ("monotonic", "time")
_IGNORED: Final = ("abeyant", "asyncio")  # modules

_kept: list[Diverted] = []  # never freed, as a thread may be in the middle of such a call


class RealClocks:
    """A detector of tasks of one loop that wait for real clocks."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start counting the moves of the virtual clock. The reads of real clocks are watched later."""
        self._loop = loop
        self._moves = 0
        self._diverted: list[Diverted] = []
        self._seen: collections.Counter[tuple[object, str]] = collections.Counter()
        self._read: set[tuple[object, str]] = set()  # since the last move

    def moved(self) -> str | None:
        """Count a move of the virtual clock. Return the reason for a deadlock if a task waits for real clocks."""
        self._moves += 1
        if self._moves in (_FIRST, _LAST):
            self._begin()
        elif self._diverted:
            self._seen.update(self._read)
            self._read.clear()
            if self._moves in (_FIRST + _WATCHED, _LAST + _WATCHED):
                return self._judge()
        return None

    def end(self) -> None:
        """Stop watching the reads of real clocks."""
        for diverted in self._diverted:
            diverted.end()
        self._diverted = []

    def _begin(self) -> None:
        self._seen.clear()
        self._read.clear()
        try:
            self._diverted = [self._watch(name) for name in _NAMES]
        except RuntimeError:  # a test has patched them, or another loop uses `clocks=True`
            return
        for diverted in self._diverted:
            diverted.begin()

    def _watch(self, name: str) -> Diverted:
        def read() -> float:
            frame = sys._getframe(1)
            module = str(frame.f_globals.get("__name__", ""))
            if asyncio._get_running_loop() is self._loop and module.partition(".")[0] not in _IGNORED:
                task = asyncio.current_task(self._loop)
                call = f"{frame.f_code.co_filename}:{frame.f_lineno} reads time.{name}()"
                self._read.add((None if task is None else task.get_name(), call))
            now: float = diverted.real()
            return now

        diverted = Diverted(getattr(time, name), read)
        _kept.append(diverted)
        return diverted

    def _judge(self) -> str | None:
        self.end()
        most_common = self._seen.most_common(1)
        if not most_common or most_common[0][1] < _NEARLY_ALL * (_WATCHED - 1):
            return None
        (task, call), _ = most_common[0]
        reason = (
            f"{task or 'a callback'} waits for the machine's clocks, which hardly move: {call} at each of the virtual "
            f"clock's {self._moves} moves; with virtual_time(clocks=True) they show virtual time"
        )
        if self._moves > _LAST:
            return reason
        warnings.warn(reason, RuntimeWarning, stacklevel=1)
        return None
