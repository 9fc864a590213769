"""Read a timer for the window: its wheels with the number of tasks in each bucket, and its next tasks.

Everything is read in slices of a fraction of a millisecond, with the GIL released in between.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable
from heapq import nsmallest
from typing import Any

from abeyant.engine import is_compiled
from abeyant.purgatory import DelayedOperation
from abeyant.reporting import shown
from abeyant.timer.base import Timer, _unpack
from abeyant.timer.survey import count_slots, first_tasks, shape_of
from abeyant.window.pacing import Pacer

MOST_SLOTS = 65_536  # slots read at most at once; of more slots, every n-th
SLICE = 1024 if is_compiled() else 256  # slots read at a time
NEXT = 12  # tasks listed
_READ = 256  # tasks that are read to find the next ones
_FRESH = 0.2  # seconds for which one reading is reused by other pages
_LONG = 80  # characters of a callback's name


class TimerView:
    """Reads one timer for all open pages: a reading is reused for 0.2 s."""

    def __init__(self, name: str, timer: Timer) -> None:
        self.name = name
        self.timer = timer
        self._read_at = float("-inf")
        self._read: dict[str, Any] = {}
        self._reading = asyncio.Lock()

    async def look(self) -> dict[str, Any]:
        """Return the state of the timer as JSON values. O(slots), at most `MOST_SLOTS`."""
        async with self._reading:
            if time.monotonic() - self._read_at > _FRESH:
                self._read = await self._look()
                self._read_at = time.monotonic()
            return self._read

    async def _look(self) -> dict[str, Any]:
        timer = self.timer
        stats = timer.stats()
        shape = shape_of(timer)
        size = shape.wheel_size
        counts = array("q", bytes(8 * size * len(shape.hands)))
        stride = -(-shape.slots // MOST_SLOTS) | 1 if shape.slots > MOST_SLOTS else 1
        slot = 0
        pacer = Pacer()
        while slot < shape.slots:
            slot = count_slots(timer, slot, SLICE, stride, counts)
            await pacer.rest()
        total = sum(counts)
        factor = stats.pending / total if stride > 1 and total else 1.0
        buckets = [
            [place // size, place % size, max(1, round(counts[place] * factor))]
            for place in range(len(counts))
            if counts[place]
        ]
        await pacer.rest()
        tasks = first_tasks(timer, _READ)
        await pacer.rest()
        now = timer.time()
        upcoming = nsmallest(NEXT, tasks, key=_deadline)
        return {
            "name": self.name,
            "kind": type(timer).__name__,
            "now": now,
            "tick": shape.tick / 1e9,
            "size": size,
            "hands": shape.hands,
            "buckets": buckets,
            "sampled": stride > 1,
            "closed": timer.closed,
            "next": [{"at": at / 1e9, "what": _what(item)} for at, item in upcoming],
            **{name: getattr(stats, name) for name in _COUNTS},
        }


_COUNTS = ("pending", "started", "expired", "cancelled", "failed", "cascaded", "levels", "wakeups", "failure")


def _deadline(task: tuple[int, Any]) -> int:
    return task[0]


def _what(item: Any) -> str:
    """Return the name of a task's callback, or of the operation that it expires."""
    callback, args = _unpack(item)
    while args and (getattr(callback, "__name__", "") == "run" or type(args[0]) is type(_what)):
        callback, args = args[0], args[1:]  # unwrap the `run` of a context or broker
    for argument in args:
        if isinstance(argument, DelayedOperation):
            return f"{type(argument).__name__} expires"
    return name_of(callback)


def name_of(callback: Callable[..., object]) -> str:
    """Return a callback's qualified name, or its `repr` if it has none; at most 80 characters."""
    name = getattr(callback, "__qualname__", None)
    return (name if isinstance(name, str) else shown(callback))[:_LONG]
