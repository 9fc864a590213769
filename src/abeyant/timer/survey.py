"""Read a timer's wheel in slices, for monitoring from another thread: the lock is held for one slice at a time.

Compiled, a slice is C code that takes a few nanoseconds per slot. A task that moves between two slices may be counted
twice or not at all; `len(timer)` is exact.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.timer.base import Timer, enter, leave


class WheelShape(NamedTuple):
    """The layout of a timer's wheels. Times are in nanoseconds on the timer's clock."""

    clock: int  # the wheels' current time
    tick: int
    wheel_size: int
    hands: list[int]  # for each wheel, the bucket that the clock is in
    slots: int  # the number of slots to read


def shape_of(timer: Timer) -> WheelShape:
    """Return the layout of a timer's wheels. O(wheels)."""
    enter(timer)
    try:
        wheel = timer._wheel
        hands = [wheel._first[level] for level in range(wheel._levels)]
        return WheelShape(wheel._clock * wheel._tick, wheel._tick, wheel._wheel_size, hands, wheel._slab._fresh)
    finally:
        leave(timer)


def count_slots(timer: Timer, begin: int, count: int, stride: int, counts: array[int]) -> int:
    """Read `count` slots, every `stride`-th from `begin`; add their tasks to `counts`. Return the next slot to read.

    A slot is the wheel's place for one task. `counts` has an element per bucket: `wheel_size` for each wheel in
    `shape_of`. Due tasks count for the first wheel's bucket that the clock is in; tasks of wheels that were added after
    `shape_of` are not counted. O(count).
    """
    enter(timer)
    try:
        wheel = timer._wheel
        slab = wheel._slab
        levels = min(wheel._levels, len(counts) // wheel._wheel_size)
        slot = begin
        for _ in range(count):
            if slot >= slab._fresh:
                break
            if slab._is_live(slot):
                ticks = slab.deadline[slot]
                level = 0
                while level < levels and ticks >= wheel._horizon[level]:
                    level += 1
                if level < levels:
                    ahead = (ticks - wheel._begin[level]) // wheel._span[level] if ticks > wheel._clock else 0
                    place = level * wheel._wheel_size + (wheel._first[level] + ahead) % wheel._wheel_size
                    counts[place] += 1
            slot += stride
        return slot
    finally:
        leave(timer)


def first_tasks(timer: Timer, most: int) -> list[tuple[int, Any]]:
    """Return up to `most` tasks of the buckets that are due first: (deadline in nanoseconds, item), unsorted.

    They are the earliest tasks, with two exceptions: a refreshed task may be due later than its bucket, and a bucket
    may hold more tasks than `most` leaves room for. Overdue tasks, which the next poll returns, are left out.
    O(most + buckets).
    """
    found: list[tuple[int, Any]] = []
    enter(timer)
    paused = pause_collection()
    try:
        wheel = timer._wheel
        slab = wheel._slab
        lists = [wheel._due, wheel._cascading]
        for level in range(wheel._levels):
            for ahead in range(wheel._wheel_size):
                lists.append(wheel._base[level] + (wheel._first[level] + ahead) % wheel._wheel_size)
        for sentinel in lists:
            slot = slab.first(sentinel)
            while slot != sentinel:
                if len(found) >= most:
                    return found
                found.append((slab.deadline[slot] * wheel._tick, slab.items[slot]))
                slot = slab.first(slot)
        return found
    finally:
        resume_collection(paused)
        leave(timer)
