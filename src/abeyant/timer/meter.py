# cython: nonecheck=True
"""Measure how late a sample of the callbacks begins and how long they take: counts by powers of two.

Reading the clock costs more than running a short callback. So one callback in `every` is measured; each other callback
costs one subtraction. If all are measured, one reading of the clock ends a callback and begins the next. Only the
timer's own thread measures; a concurrent reader may see a callback in the counts before it is in the totals.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.engine.memory import longs
    from abeyant.timer.clock import bit_length
else:
    from cython.cimports.abeyant.engine.memory import longs
    from cython.cimports.abeyant.timer.clock import bit_length

_BUCKETS = 26  # up to 2**10 ns, 2**11 ns and so on to 2**34, and longer
_FIRST = 10
_MOST = 1_000_000

BOUNDS = tuple((1 << power) / 1e9 for power in range(_FIRST, _FIRST + _BUCKETS - 1))
"""Inclusive upper ends of the buckets, in seconds: 1 us to 17 s. The last bucket has no upper end."""


class Durations(NamedTuple):
    """Counts of durations by range, and their sum in seconds."""

    counts: tuple[int, ...]
    """One count for each of `BOUNDS`, and one for longer durations."""
    total: float
    """The sum of all durations, in seconds."""


class Latencies(NamedTuple):
    """Lateness and run time of callbacks, measured since `measure` was first called."""

    lateness: Durations
    """Time from a task's deadline, rounded up to a tick, to the start of its callback."""
    callback: Durations
    """Run time of the callback."""


class Meter:
    """The latencies measured in one timer: counts by bucket, and totals."""

    __slots__ = ("_every", "_late", "_late_counts", "_late_total", "_left", "_long", "_long_counts", "_long_total")

    def __init__(self, every: int) -> None:
        """Create a meter that measures one callback in `every`."""
        self._every = every
        self._left = 1
        self._late = array("q", bytes(8 * _BUCKETS))
        self._long = array("q", bytes(8 * _BUCKETS))
        self._late_counts = longs(self._late)  # compiled, these are pointers: counting makes no Python integer
        self._long_counts = longs(self._long)
        self._late_total = 0
        self._long_total = 0

    def _due(self) -> bool:
        """Count a callback. Return whether to measure it."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._every
        return True

    def _add(self, late: int, took: int) -> None:
        """Add a callback's lateness and run time, in nanoseconds."""
        if late < 0:
            late = 0
        self._late_counts[_bucket(late)] += 1
        self._long_counts[_bucket(took)] += 1
        self._late_total += late
        self._long_total += took

    def read(self) -> Latencies:
        """Return the counts so far."""
        return Latencies(
            Durations(tuple(self._late), self._late_total / 1e9), Durations(tuple(self._long), self._long_total / 1e9)
        )


def measuring(meter: Meter | None, every: int) -> Meter:
    """Set `meter`, or a new one if None, to measure one callback in `every`. ValueError unless 1 to 1,000,000."""
    if type(every) is not int or not 1 <= every <= _MOST:
        raise ValueError(f"every must be from 1 to {_MOST}, to measure one callback in that many, not {every!r}")
    if meter is None:
        return Meter(every)
    meter._every = every
    return meter


def _bucket(duration: int) -> int:
    """Return the bucket of a duration in nanoseconds: the first bucket whose upper end is not below the duration."""
    bucket = bit_length((duration - 1) >> _FIRST) if duration > 0 else 0
    return bucket if bucket < _BUCKETS else _BUCKETS - 1
