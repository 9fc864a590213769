"""The hashed wheel with rounds: one wheel of many buckets; tasks beyond its length wait for a number of rounds.

Sources: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 6; Netty's `HashedWheelTimer`
(by default 512 buckets of 100 ms). As in Netty, a task that is due within a tick is returned when that tick is over: a
whole tick late if the deadline is the tick's beginning. Every tick visits one bucket and counts down the rounds of all
tasks in it, whether any is due or not.

(Netty files new tasks from a queue at the next tick, because of its threads; here they are filed at once.)
"""

from __future__ import annotations

from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

_MOST_BUCKETS = 1 << 24


def precision(tick: int = 100, size: int = 512) -> Precision:
    """Return the promise of a hashed wheel: tasks are up to a whole tick late."""
    return Precision(lambda delay: tick, apart=tick, words="up to a whole tick", polls=True)


class HashedWheel(Rival):
    """A timer queue on a hashed wheel. Start and stop O(1); a tick O(tasks in its bucket), which is O(n / size)."""

    __slots__ = ("_base", "_clock", "_size", "_tick")

    def __init__(self, tick: int = 100, size: int = 512, start: int = 0) -> None:
        """Take the `tick` in units, the number of buckets `size`, and the time `start` in units."""
        super().__init__(start)
        if not 2 <= size <= _MOST_BUCKETS or tick < 1:
            raise ValueError(f"tick must be positive and size from 2 to {_MOST_BUCKETS:,}, not {tick} and {size}")
        self._tick = tick
        self._size = size
        self._base = self._slab.reserve(size)
        self._clock = start // tick  # the tick that is under way: its bucket comes out when it is over

    def _file(self, slot: int, deadline: int) -> None:
        ticks = deadline // self._tick
        if ticks < self._clock:
            ticks = self._clock
        # A slot's deadline is not looked at any more: its place is that of the rounds that are left.
        self._slab.deadline[slot] = (ticks - self._clock) // self._size
        self._slab.push_back(self._base + ticks % self._size, slot)

    def _upcoming(self) -> int:
        return (self._clock + 1) * self._tick

    def _collect(self) -> None:
        target = self._now // self._tick
        if self._pending == 0:
            self._clock = target
        slab = self._slab
        while self._clock < target:
            sentinel = self._base + self._clock % self._size
            slot = slab.first(sentinel)
            while slot != sentinel:
                after = slab.first(slot)
                if slab.deadline[slot] == 0:
                    slab.unlink(slot)
                    slab.push_back(self._due, slot)
                else:
                    slab.deadline[slot] -= 1
                slot = after
            self._clock += 1

    def _filed(self) -> list[int]:
        slots: list[int] = []
        for index in range(self._size):
            slots += self._slab.members(self._base + index)
        assert min([self._slab.deadline[slot] for slot in slots], default=0) >= 0, "no rounds below none"
        return slots
