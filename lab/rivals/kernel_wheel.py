"""The wheel that does not cascade: levels of 64 buckets, each eight times as coarse as the one below.

Source: Linux `kernel/time/timer.c` since 4.8 (Gleixner, "timers: Switch to a non-cascading wheel", 2016). The delay
decides the level of a task. The deadline is rounded up to the level's granularity, and the task comes due with its
bucket. So it is late by up to an eighth of its delay, but is never moved. A bit for each bucket says whether it has
tasks, so the next bucket is found without visiting empty ones.

    level 0: delays up to 62 ticks, at 1 tick        level 2: up to 4,031 ticks, at 64
    level 1: up to 503 ticks, at 8                   level n: up to 63 * 8**n - 1 ticks, at 8**n

The kernel rounds *past* a deadline even if the deadline is the beginning of a bucket, as a tick may be half over when a
task is added; this code does the same. The kernel cuts delays beyond the last level short, so that the task runs early;
this code raises OverflowError instead.
"""

from __future__ import annotations

from array import array

from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

LEVELS = 9  # as the kernel has with a tick of a millisecond: up to 12 days
_BUCKETS = 64
_FINE = 63  # a level takes delays below so many of its buckets: one less, for they are rounded up to the next
_SHIFT = 3  # of the granularity, in bits a level
_DEEPEST = 16
_ALL_BITS = (1 << 64) - 1
_FOREVER = (1 << 63) - 1


def precision(tick: int = 1, levels: int = LEVELS) -> Precision:
    """Return the promise of the kernel's wheel: tasks are late by up to the granularity of their delay's level."""

    def at_most(delay: int) -> int:
        granularity = tick
        while delay // tick + 1 >= _FINE * granularity // tick:
            granularity <<= _SHIFT
        return granularity

    reach = ((_FINE << (_SHIFT * (levels - 1))) - 2) * tick
    return Precision(at_most, apart=None, words="up to an eighth of the delay; in no order", reach=reach)


class KernelWheel(Rival):
    """A timer queue on the kernel's wheel. Start, stop and expire O(1); `next_expiration` O(levels)."""

    __slots__ = ("_base", "_clock", "_levels", "_occupied", "_reach", "_tick")

    def __init__(self, tick: int = 1, levels: int = LEVELS, start: int = 0) -> None:
        """Take the `tick` in units, the number of `levels` from 1 to 16, and the time `start` in units."""
        super().__init__(start)
        if not 1 <= levels <= _DEEPEST or tick < 1:
            raise ValueError(f"tick must be positive and levels from 1 to {_DEEPEST}, not {tick} and {levels}")
        self._tick = tick
        self._levels = levels
        self._base = self._slab.reserve(levels * _BUCKETS)
        self._occupied = array("Q", [0] * _DEEPEST)  # of each level, a bit a bucket
        self._reach = array("q", [_FINE << (_SHIFT * level) for level in range(_DEEPEST)])  # in ticks
        self._clock = start // tick  # all buckets up to this tick have been emptied

    def _admit(self, deadline: int) -> None:
        if deadline // self._tick - self._clock >= self._reach[self._levels - 1]:
            raise OverflowError(f"deadline {deadline} is further ahead than {self._levels} levels reach")

    def _file(self, slot: int, deadline: int) -> None:
        ticks = deadline // self._tick
        if ticks < self._clock:
            self._slab.push_back(self._due, slot)
            return
        level = 0
        while ticks - self._clock >= self._reach[level]:
            level += 1
        bucket = ((ticks >> (_SHIFT * level)) + 1) & (_BUCKETS - 1)
        self._occupied[level] |= self._bit(bucket)
        self._slab.push_back(self._base + level * _BUCKETS + bucket, slot)

    def _forget(self, slot: int, handle: int) -> None:
        before = self._slab.last(slot)
        number = before - self._base
        if before == self._slab.first(slot) and 0 <= number < self._levels * _BUCKETS:  # alone in its bucket
            self._occupied[number // _BUCKETS] &= ~self._bit(number % _BUCKETS) & _ALL_BITS

    def _upcoming(self) -> int:
        return self._next_ticks() * self._tick

    def _collect(self) -> None:
        target = self._now // self._tick
        while True:
            upcoming = self._next_ticks()
            if upcoming > target:
                break
            self._clock = upcoming
            self._empty(upcoming)
        self._clock = target

    def _next_ticks(self) -> int:
        """Return when the next bucket with a task is due, in ticks."""
        first = _FOREVER
        for level in range(self._levels):
            occupied = self._occupied[level]
            if occupied:
                ahead = (self._clock >> (_SHIFT * level)) + 1  # the first bucket that is not over
                ticks = (ahead + self._first_from(occupied, ahead & (_BUCKETS - 1))) << (_SHIFT * level)
                if ticks < first:
                    first = ticks
        return first

    def _empty(self, ticks: int) -> None:
        """Move the tasks of the buckets that are due at `ticks` to `_due`, the coarsest first, as the kernel does."""
        slab = self._slab
        for level in range(self._levels - 1, -1, -1):
            if (ticks >> (_SHIFT * level)) << (_SHIFT * level) != ticks:
                continue
            bucket = (ticks >> (_SHIFT * level)) & (_BUCKETS - 1)
            self._occupied[level] &= ~self._bit(bucket) & _ALL_BITS
            sentinel = self._base + level * _BUCKETS + bucket
            slot = slab.first(sentinel)
            while slot != sentinel:
                slab.unlink(slot)
                slab.push_back(self._due, slot)
                slot = slab.first(sentinel)

    def _bit(self, bucket: int) -> int:
        one = 1  # in C of 64 bits, which a literal is not
        return one << bucket

    def _first_from(self, occupied: int, bucket: int) -> int:
        """Return how far it is from `bucket`, round the wheel, to the first bucket whose bit is set. One is set."""
        turned = ((occupied >> bucket) | (occupied << ((_BUCKETS - bucket) & (_BUCKETS - 1)))) & _ALL_BITS
        distance = 0
        width = 32
        while width:
            if not turned & (self._bit(width) - 1):
                turned >>= width
                distance += width
            width >>= 1
        return distance

    def _filed(self) -> list[int]:
        slots: list[int] = []
        for number in range(self._levels * _BUCKETS):
            here = self._slab.members(self._base + number)
            marked = (self._occupied[number // _BUCKETS] >> (number % _BUCKETS)) & 1
            assert bool(here) == bool(marked), "a bucket's bit says whether it has tasks"
            slots += here
        return slots
