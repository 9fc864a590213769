# cython: cdivision=True
"""The timing wheel of a replay: it does what `TimingWheel` does, but knows in advance when each task stops.

In a trace the future is known, so stopping a task takes no work at all: it is neither searched for nor unlinked.
When a bucket comes up, each row that was filed in it is checked for whether it is pending *at that time*, and only
pending rows are filed again or handed out. So a bucket is a singly linked chain of rows. It is written and read in
sequence, which the processor's caches and prefetchers can follow, without a random access for each stop. Therefore the
cost of a row does not depend on how many are pending (measured: the row `replay` of the benchmarks).

Its counts are the same as those of a `TimingWheel` that is driven event by event: the same buckets at the same times,
the same cascades, wheels and entries of the delay queue; even an emptied bucket stays until it reaches the front. Tests
drive both wheels, and compare the counts.

Ground rules
------------
* `now` (in units) is the time at which a row counts as stopped or pending. It never goes back, and the caller moves it
  only after all earlier buckets have come up. A deadline is never before `now` when its row is filed.
* All columns are indexed by row. A row is in one chain at most; `file` is called once for each row, when it starts.
"""

from __future__ import annotations

from array import array

from abeyant.engine.delay_queue import DelayQueue
from abeyant.engine.slab import grown
from abeyant.kernels.buffers import zeros

_FOREVER = (1 << 63) - 1  # ticks: where the last wheel ends; C constants when compiled
_MAX_LEVELS = 64  # as in wheel.py
_NONE = -1  # the end of a chain; no row, no time


class TraceWheel:
    """A timing wheel of a trace's rows, by deadline. Times are integers in the caller's unit.

    `deadlines` has each row's deadline, from 0 to 2**62. A row with `stops[row]` set stops at `ended_at[row]`, other
    rows never stop. The columns belong to the caller, and must not change once a row is filed.
    """

    __slots__ = (
        "_deadlines", "_due", "_ended_at", "_expiration", "_first", "_horizon", "_next", "_queue", "_span", "_stops",
        "_tick", "_wheel_size", "cascaded", "clock", "levels", "now",
    )  # fmt: skip

    def __init__(
        self,
        tick: int,
        wheel_size: int,
        start: int,
        deadlines: array[int],
        stops: array[int],
        ended_at: array[int],
    ) -> None:
        self._tick = tick
        self._wheel_size = wheel_size
        self._deadlines = deadlines
        self._stops = stops
        self._ended_at = ended_at
        self.now = start
        self.clock = start // tick  # in ticks
        self.cascaded = 0
        self._due = _NONE  # the first row of the chain of those due at the clock's tick
        self._next = zeros("i", len(deadlines))  # by row: the next of its chain
        self._queue = DelayQueue()  # of buckets, by expiration in ticks
        self._first = zeros("i", 0)  # by bucket: the first row of its chain
        self._expiration = zeros("q", 0)  # by bucket: in ticks; _NONE while it is not in the queue
        self.levels = 0
        self._span = zeros("q", _MAX_LEVELS)  # by level: the ticks a bucket spans
        self._horizon = zeros("q", _MAX_LEVELS)  # by level: the first tick it cannot hold
        self._add_level()

    def file(self, row: int) -> None:
        """File a row that is in no chain into the bucket of its deadline, as of the clock. O(1)."""
        ticks = self._ticks(row)
        if ticks <= self.clock:
            self._next[row] = self._due
            self._due = row
        else:
            self._file_ahead(row, ticks)

    def _ticks(self, row: int) -> int:
        return (self._deadlines[row] + self._tick - 1) // self._tick

    def _file_ahead(self, row: int, ticks: int) -> None:
        level = 0
        while ticks >= self._horizon[level]:
            level += 1
            if level == self.levels:
                self._add_level()
        place = ticks // self._span[level]
        bucket = level * self._wheel_size + place % self._wheel_size
        expiration = place * self._span[level]
        if self._expiration[bucket] != expiration:
            self._expiration[bucket] = expiration
            self._queue.push(expiration, bucket)
        self._next[row] = self._first[bucket]
        self._first[bucket] = row

    def may_wake_before(self, time: int) -> bool:
        """Return whether a row is due or a bucket expires before `time`; else `wakes_before` does nothing. O(1)."""
        return self._due != _NONE or (self._queue._size > 0 and self._queue.first_expiration() * self._tick < time)

    def wakes_before(self, time: int) -> bool:
        """Move `now` to the time of the next bucket with a pending row; return False if there is none before `time`.

        A bucket that was queued with a time that has passed comes up at `now`. O(1), and O(log buckets) once for an
        emptied bucket.
        """
        while self.may_wake_before(time):
            if self._due != _NONE:
                return True
            self.now = max(self.now, self._queue.first_expiration() * self._tick)
            upcoming = self._next_ticks()
            if upcoming != _NONE and upcoming * self._tick <= self.now:
                return True
        return False

    def settle(self, target: int) -> None:
        """Cascade buckets, and move the clock towards `target` (ticks), until a row is due or `target` is reached."""
        while True:
            if self._queue._size > 0 and self._queue.first_expiration() <= self.clock:
                self._cascade(self._queue.pop())
                continue
            upcoming = self._next_ticks()
            if upcoming == self.clock or self.clock == target:
                break
            if upcoming == _NONE or upcoming > target:
                self._set_clock(target)
            elif not self._reach_lone(target):
                self._set_clock(upcoming)

    def _reach_lone(self, target: int) -> bool:
        """Move the clock to the next row's deadline if no other row can come before it; return whether the clock moved.

        That is so if the row is alone in the first bucket, and due by `target` and before the second bucket comes up.
        """
        bucket = self._queue.first_bucket()
        row = self._first[bucket]
        other = self._next[row]
        while other != _NONE and self._has_stopped(other):
            other = self._next[other]
        self._next[row] = other
        ticks = self._ticks(row)
        if other != _NONE or ticks > target or ticks >= self._queue.second_expiration():
            return False
        self._expiration[self._queue.pop()] = _NONE
        self._first[bucket] = _NONE
        self._set_clock(ticks)
        self._due = row
        return True

    def next_due(self) -> int:
        """Return a due row and unlink it; -1 if none is due."""
        row = self._due
        if row != _NONE:
            self._due = self._next[row]
        return row

    def bucket_operations(self) -> int:
        """Return the number of buckets put into the delay queue and taken out of it so far."""
        return 2 * self._queue._pushed - self._queue._size

    def _next_ticks(self) -> int:
        """Return the time of the first bucket with a pending row, in ticks; -1 if there is none.

        If a row is due, this is the clock. Emptied buckets in front of the first bucket with a pending row are removed.
        """
        if self._due != _NONE:
            return self.clock
        while self._queue._size > 0:
            bucket = self._queue.first_bucket()
            row = self._first[bucket]
            while row != _NONE and self._has_stopped(row):
                row = self._next[row]
            self._first[bucket] = row
            if row != _NONE:
                return self._queue.first_expiration()
            self._expiration[self._queue.pop()] = _NONE
        return _NONE

    def _has_stopped(self, row: int) -> bool:
        return self._stops[row] != 0 and self._ended_at[row] <= self.now

    def _cascade(self, bucket: int) -> None:
        """File anew the pending rows of a bucket that has come up."""
        self._expiration[bucket] = _NONE
        row = self._first[bucket]
        self._first[bucket] = _NONE
        while row != _NONE:
            after = self._next[row]
            if not self._has_stopped(row):
                self.file(row)
                self.cascaded += self._due != row
            row = after

    def _add_level(self) -> None:
        level = self.levels
        self._span[level] = self._span[level - 1] * self._wheel_size if level else 1
        buckets = (level + 1) * self._wheel_size
        self._first = grown(self._first, "i", buckets)
        self._expiration = grown(self._expiration, "q", buckets)
        for bucket in range(level * self._wheel_size, buckets):
            self._first[bucket] = _NONE
            self._expiration[bucket] = _NONE
        self.levels = level + 1
        self._set_horizon(level)

    def _set_horizon(self, level: int) -> None:
        span = self._span[level]
        first = self.clock // span
        # A wheel that would reach beyond 2**63 is the last, and holds every possible deadline.
        if first + self._wheel_size > _FOREVER // span:
            self._horizon[level] = _FOREVER
        else:
            self._horizon[level] = (first + self._wheel_size) * span

    def _set_clock(self, ticks: int) -> None:
        self.clock = ticks
        for level in range(self.levels):
            was = self._horizon[level]
            self._set_horizon(level)
            if self._horizon[level] == was:
                break  # no bucket of this wheel has passed, so none of a higher wheel has
