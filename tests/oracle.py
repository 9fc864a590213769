"""The dumb reference for every timer: a sorted list. Slow, and too simple to be wrong.

It is a judge rather than a double. The order of tasks within a tick is not wholly laid down (a refreshed task
keeps the order of ticks only), so the oracle does not foretell what comes next: it is told what came, and
objects when that breaks a law.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable
from typing import NamedTuple


class Waiting(NamedTuple):
    ticks: int  # the deadline, rounded up
    order: int  # of arrival
    key: Hashable
    refreshed: bool


class Oracle:
    """Pending tasks by key, in the order in which they are to run. Times are in units, as the wheel's are."""

    def __init__(self, tick: int = 1) -> None:
        self.tick = tick
        self._sorted: list[Waiting] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._sorted)

    def __contains__(self, key: Hashable) -> bool:
        return any(task.key == key for task in self._sorted)

    def add(self, key: Hashable, deadline: int) -> None:
        assert key not in self, "a mistake in the test: keys are for one task each"
        self._insert(key, deadline, refreshed=False)

    def remove(self, key: Hashable) -> bool:
        """Whether the task was pending: what `cancel` has to return (T3)."""
        was = len(self._sorted)
        self._sorted = [task for task in self._sorted if task.key != key]
        return len(self._sorted) < was

    def refresh(self, key: Hashable, deadline: int) -> bool:
        if not self.remove(key):
            return False
        self._insert(key, deadline, refreshed=True)
        return True

    def deadline(self, key: Hashable) -> int | None:
        """In units, rounded up to a tick; None of a task that is not pending."""
        return next((task.ticks * self.tick for task in self._sorted if task.key == key), None)

    def first_deadline(self) -> int | None:
        return self._sorted[0].ticks * self.tick if self._sorted else None

    def due(self, now: int) -> list[Hashable]:
        """What has reached its deadline at `now`."""
        return [task.key for task in self._sorted if task.ticks * self.tick <= now]

    def pending(self) -> list[Hashable]:
        return [task.key for task in self._sorted]

    def hand_out(self, key: Hashable, now: int) -> None:
        """`key` has come due at `now`: object unless it may be this one's turn."""
        task = next((task for task in self._sorted if task.key == key), None)
        assert task is not None, f"T3: {key} was handed out, but is not pending"
        assert task.ticks * self.tick <= now, f"T1: {key}, due at {task.ticks * self.tick}, came out at {now}"
        self._judge_order(task)
        self._sorted.remove(task)

    def drain(self, keys: list[Hashable]) -> None:
        """All that was pending came out, in this order, whether due or not."""
        for key in keys:
            task = next((task for task in self._sorted if task.key == key), None)
            assert task is not None, f"T3: {key} was drained, but is not pending"
            self._judge_order(task)
            self._sorted.remove(task)
        assert not self._sorted, f"T9: not drained: {self._sorted}"

    def _judge_order(self, task: Waiting) -> None:
        first = self._sorted[0]
        assert task.ticks == first.ticks, f"T6: {task} came before {first}"
        if not task.refreshed:
            elder = next(one for one in self._sorted if not one.refreshed)
            assert elder is task, f"T6: {task} came before {elder}, added earlier for the same tick"

    def _insert(self, key: Hashable, deadline: int, refreshed: bool) -> None:
        ticks = -(-deadline // self.tick)
        insort(self._sorted, Waiting(ticks, self._arrivals, key, refreshed))
        self._arrivals += 1
