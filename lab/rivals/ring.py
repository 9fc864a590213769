"""The simple ring, for time-outs that are bounded or all alike: a bucket per tick, and a hand that goes round.

Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 4; idle connections are often
kept in such a ring, of sets. The ring takes no deadline further ahead than its length. It does not know which bucket is
the next with a task, so it looks at every tick.
"""

from __future__ import annotations

from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

_MOST_BUCKETS = 1 << 24


def precision(tick: int = 1, size: int = 4096) -> Precision:
    """Return the promise of a ring: tasks are late by less than a tick, as on a wheel, but delays are limited."""
    return Precision(lambda delay: tick - 1, apart=tick, words="less than a tick", reach=(size - 1) * tick, polls=True)


class Ring(Rival):
    """A timer queue on a simple ring. Start, stop and expire O(1); each tick O(1)."""

    __slots__ = ("_base", "_clock", "_size", "_tick")

    def __init__(self, tick: int = 1, size: int = 4096, start: int = 0) -> None:
        """Take `tick` and `start` in units, and the number of buckets: deadlines reach `(size - 1) * tick` ahead."""
        super().__init__(start)
        if not 2 <= size <= _MOST_BUCKETS or tick < 1:
            raise ValueError(f"tick must be positive and size from 2 to {_MOST_BUCKETS:,}, not {tick} and {size}")
        self._tick = tick
        self._size = size
        self._base = self._slab.reserve(size)
        self._clock = start // tick  # in ticks; this bucket and all before it have been emptied

    def _admit(self, deadline: int) -> None:
        if self._ticks(deadline) - self._clock > self._size:
            raise OverflowError(f"deadline {deadline} is further ahead than a ring of {self._size} buckets reaches")

    def _file(self, slot: int, deadline: int) -> None:
        ticks = self._ticks(deadline)
        self._slab.push_back(self._due if ticks <= self._clock else self._base + ticks % self._size, slot)

    def _upcoming(self) -> int:
        return (self._clock + 1) * self._tick

    def _collect(self) -> None:
        target = self._now // self._tick
        steps = min(target - self._clock, self._size)  # once round empties all
        slab = self._slab
        for step in range(1, steps + 1):
            sentinel = self._base + (self._clock + step) % self._size
            slot = slab.first(sentinel)
            while slot != sentinel:
                slab.unlink(slot)
                slab.push_back(self._due, slot)
                slot = slab.first(sentinel)
        self._clock = target

    def _ticks(self, deadline: int) -> int:
        """Return a deadline in ticks, rounded up."""
        ticks = deadline // self._tick
        return ticks if ticks * self._tick == deadline else ticks + 1

    def _filed(self) -> list[int]:
        slots: list[int] = []
        for index in range(self._size):
            for slot in self._slab.members(self._base + index):
                ticks = self._ticks(self._slab.deadline[slot])
                assert ticks % self._size == index, "a task is in its bucket"
                assert self._clock < ticks <= self._clock + self._size
                slots.append(slot)
        return slots
