"""Columnar replay: the trace of one instance through the wheel, outcomes and the wheel's own work out.

A trace is three columns of 64-bit integers, a row an operation: when it started, its time-out, and when its condition
came true. `replay` decides each outcome by the laws O1-O3, and runs every operation that had to wait through a real
`BulkWheel`: started, filed, cascaded, and stopped when it completes or handed out when it expires. So the statistics
are the engine's own, for any tick and wheel size, and a what-if is a call with another tick. Nothing is shared and
nothing is kept: a pure function of its arguments.

The outcome and the wheel
-------------------------
* **The outcome is the law's, at exact deadlines**, whatever the tick: completed at max(start, end) where end <=
  deadline (`deadline="exclusive"`: end < deadline) or end <= start; expired at the deadline otherwise.
* **Lateness is the wheel's.** It can tell of an expiry only at the first tick at or after the deadline; lateness is
  that time less the deadline, in units, 0 where the tick is 1. An operation whose condition came true in between
  has expired by the law, and would have completed under a driver of that tick: `overtaken` counts these.

The driver
----------
It is the ideal one, that wakes exactly when the delay queue's first bucket comes up and needs no time to run; the
clock of the wheel moves only then, as in Kafka's `SystemTimer` and in our `ManualTimer`. A bucket queued with a
time that has passed already (the clock lagged behind) comes up at the end of the same instant. Within an instant
progress comes before starts, and starts before expiries (O3). An operation whose condition holds when it starts is
never timed, as in the purgatory.

Cost: O(rows) for the wheel, and O(rows) for bringing starts (unless they are sorted) and ends into order, by a radix
sort (Knuth, TAOCP 3, 5.2.5). Memory: 17 bytes a row, 24 more for each that completes after a wait, and the wheel.
The global interpreter lock is held throughout.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Literal, NamedTuple

from abeyance.engine.buffers import integers, same_length, zeros
from abeyance.engine.bulk import BulkWheel
from abeyance.engine.wheel import MAX_TIME

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NEVER = (1 << 63) - 1  # for `ends`: the condition never came true (as any time after the deadline says, too)

_MAX_TIME = MAX_TIME  # C constants when compiled
_FOREVER = NEVER
_LOW_HALF = 0xFFFFFFFF
_DIGIT = 11  # bits that a pass of the radix sort takes: a table of 2,048 counts stays in the first cache
_DIGITS = 1 << _DIGIT
_DIGIT_MASK = _DIGITS - 1
_MOST_ROWS = 1 << 30  # as many as a wheel holds


class ReplayStats(NamedTuple):
    """What the operations and the wheel did. Times are in the trace's unit."""

    operations: int
    completed: int
    expired: int
    completed_at_start: int  # of the completed: the condition held at the start, so no timer was started
    overtaken: int  # of the expired: the condition came true before the wheel, a tick late at most, could tell
    max_pending: int  # timers at once: the most after any instant's progress and starts, before its expiries
    pending_time: int  # the integral of pending timers over time; over the trace's length it is their mean
    lateness_max: int
    lateness_sum: int
    started: int  # timers
    cancelled: int  # timers stopped, for their operation completed
    cascaded: int  # times that a timer was filed anew because its bucket came up before its deadline
    levels: int  # wheels needed
    wakeups: int  # instants at which the driver woke: a bucket with a timer in it came up, or one was due at once
    bucket_operations: int  # buckets put into the delay queue and taken out of it
    first: int  # when the trace began: its first start; 0 of an empty trace
    last: int  # when its last timer had ended (expiries as told by the wheel)


class Replayed(NamedTuple):
    """A row's outcome stands at the row's place."""

    completed: array[int]  # unsigned bytes (`B`): 1 completed, 0 expired
    ended_at: array[int]  # `q`: when, by the laws: at exact deadlines
    stats: ReplayStats


def replay(
    starts: ReadableBuffer,
    timeouts: ReadableBuffer,
    ends: ReadableBuffer,
    *,
    absolute: bool = False,
    deadline: Literal["inclusive", "exclusive"] = "inclusive",
    tick: int = 1,
    wheel_size: int = 64,
) -> Replayed:
    """Run a trace through a wheel with this tick (units) and wheel size; see the module's head for the laws.

    Three buffers of 64-bit integers (`buffers.integers`), in one unit of the caller's choice, rows in any order (sorted
    by start is quicker). `starts` are from 0 to 2**62; `timeouts` are durations from 0 or, with `absolute`, deadlines
    at or after the start; `ends` say when the condition came true, which may be before the start, and NEVER (or
    anything after the deadline) if it did not. `result.completed` and `result.ended_at` are buffers in their turn:
    `numpy.frombuffer(result.ended_at, "int64")`.

    Raises ValueError for columns of different length, a start or time-out that is negative, a deadline beyond 2**62,
    and TypeError for other kinds of buffer; each names the column, and the row where it is one row's.
    """
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    began = integers(starts, "starts")
    until = integers(timeouts, "timeouts")
    held = integers(ends, "ends")
    rows = len(began)
    same_length("timeouts", until, "starts", rows)
    same_length("ends", held, "starts", rows)
    if rows >= _MOST_ROWS:
        raise ValueError(f"a trace of {rows:,} rows is too long: replay less than {_MOST_ROWS:,} at a time")
    return _replay(began, until, held, absolute, deadline == "exclusive", tick, wheel_size)


def _replay(
    starts: memoryview,
    until: memoryview,
    ends: memoryview,
    absolute: bool,
    exclusive: bool,
    tick: int,
    wheel_size: int,
) -> Replayed:
    run = _Run(starts, until, ends, absolute, exclusive, tick, wheel_size)
    completed = zeros("B", len(starts))
    ended_at = zeros("q", len(starts))
    run.judge(completed, ended_at)
    run.drive(completed, ended_at)
    return Replayed(completed, ended_at, run.stats())


class _Run:
    """One replay on its way. The columns, the wheel, and what has been counted."""

    __slots__ = (
        "_absolute", "_at_start", "_bulk", "_completed", "_ends", "_exclusive", "_first", "_handles", "_last",
        "_late_high", "_late_low", "_late_most", "_most", "_now", "_overtaken", "_sorted", "_starts", "_tick",
        "_until", "_waited_high", "_waited_low", "_wakeups", "_wheel_size",
    )  # fmt: skip

    def __init__(
        self,
        starts: memoryview,
        until: memoryview,
        ends: memoryview,
        absolute: bool,
        exclusive: bool,
        tick: int,
        wheel_size: int,
    ) -> None:
        self._bulk = BulkWheel(tick, wheel_size)  # another takes its place when the first start is known
        self._tick = tick
        self._wheel_size = wheel_size
        self._starts = starts
        self._until = until
        self._ends = ends
        self._absolute = absolute
        self._exclusive = exclusive
        self._handles = zeros("q", len(starts))  # by row
        self._sorted = True  # by start
        self._completed = 0
        self._at_start = 0
        self._overtaken = 0
        self._most = 0
        self._late_most = 0
        self._late_high = 0  # sums that may go past 64 bits, in two parts: what is above 32 bits, and below
        self._late_low = 0
        self._waited_high = 0
        self._waited_low = 0
        self._wakeups = 0
        self._first = 0
        self._now = 0
        self._last = 0

    # -- outcomes ------------------------------------------------------------------------------------------

    def judge(self, completed: array[int], ended_at: array[int]) -> None:
        """Decide every outcome by the laws O1-O3. Raises ValueError at the first row that makes no sense."""
        row = self._judge(completed, ended_at)
        if row < 0:
            return
        start = self._starts[row]
        until = self._until[row]
        if not 0 <= start <= MAX_TIME:
            raise ValueError(f"row {row}: the start {start} is not from 0 to 2**62")
        if self._absolute and until < start:
            raise ValueError(f"row {row}: the deadline {until} is before the start {start}")
        if until < 0:
            raise ValueError(f"row {row}: the time-out {until} is negative")
        raise ValueError(f"row {row}: the deadline is beyond 2**62 (start {start}, timeouts {until})")

    def _judge(self, completed: array[int], ended_at: array[int]) -> int:
        """The first row that makes no sense, or -1."""
        absolute = self._absolute
        first = _MAX_TIME
        before = 0
        for row in range(len(self._starts)):
            start = self._starts[row]
            until = self._until[row]
            if start < 0 or start > _MAX_TIME or until < 0 or until > (_MAX_TIME if absolute else _MAX_TIME - start):
                return row
            deadline = until if absolute else start + until
            if deadline < start:
                return row
            if start < before:
                self._sorted = False
            if start < first:
                first = start
            before = start
            end = self._ends[row]
            if end <= start:
                completed[row] = 1
                ended_at[row] = start
                self._at_start += 1
            elif end < deadline or (end == deadline and not self._exclusive):
                completed[row] = 1
                ended_at[row] = end
                self._completed += 1
            else:
                ended_at[row] = deadline
        self._first = first if len(self._starts) else 0
        return -1

    # -- the wheel's part ----------------------------------------------------------------------------------

    def drive(self, completed: array[int], ended_at: array[int]) -> None:
        """Start and stop timers in the order of time, letting the wheel come up in between."""
        self._bulk = BulkWheel(self._tick, self._wheel_size, self._first)
        self._now = self._first
        self._last = self._first
        end_at = zeros("q", self._completed)
        end_row = zeros("i", self._completed)
        self._collect_ends(completed, ended_at, end_at, end_row)
        sort_by_key(end_at, end_row)
        if self._sorted:
            self._drive(self._starts, end_row, end_at, end_row)
            return
        start_at = zeros("q", len(self._starts))
        start_row = zeros("i", len(self._starts))
        self._collect_starts(start_at, start_row)
        sort_by_key(start_at, start_row)
        self._drive(start_at, start_row, end_at, end_row)

    def _collect_starts(self, start_at: array[int], start_row: array[int]) -> None:
        for row in range(len(self._starts)):
            start_at[row] = self._starts[row]
            start_row[row] = row

    def _collect_ends(
        self, completed: array[int], ended_at: array[int], end_at: array[int], end_row: array[int]
    ) -> None:
        """When operations completed that had to wait, and their rows."""
        ends = 0
        for row in range(len(self._starts)):
            # The bound holds unless a column is changed meanwhile, by another thread; that must not corrupt memory.
            if completed[row] and ended_at[row] > self._starts[row] and ends < len(end_at):
                end_at[ends] = ended_at[row]
                end_row[ends] = row
                ends += 1

    def _drive(
        self, start_at: memoryview | array[int], start_row: array[int], end_at: array[int], end_row: array[int]
    ) -> None:
        """The loop over all starts and ends. `start_row` is not looked at when the trace is sorted by start."""
        bulk = self._bulk
        wheel = bulk._wheel
        starts = len(start_at)
        ends = len(end_at)
        next_start = 0
        next_end = 0
        while next_start < starts or next_end < ends:
            ending = next_end < ends and (next_start == starts or end_at[next_end] <= start_at[next_start])
            at = end_at[next_end] if ending else start_at[next_start]
            if at > self._now:
                if self._may_come_up_before(at):
                    self._come_up_before(at)
                self._now = at
            if ending:  # at one instant progress comes before starts (O3)
                row = end_row[next_end]
                next_end += 1
                wheel._remove(self._handles[row])
                self._leave(at)
                continue
            row = next_start if self._sorted else start_row[next_start]
            next_start += 1
            if self._ends[row] <= at:
                continue  # the condition holds already: completed, and never timed
            self._handles[row] = bulk._add(self._until[row] if self._absolute else at + self._until[row], row)
            self._waited_high -= at >> 32
            self._waited_low -= at & _LOW_HALF
            if wheel._pending > self._most:
                self._most = wheel._pending
        self._come_up_before(_FOREVER)

    def _may_come_up_before(self, at: int) -> bool:
        """False only if `_come_up_before` has nothing to do: three loads, for most events are not held up."""
        wheel = self._bulk._wheel
        queue = wheel._queue
        if queue._size > 0 and queue._expiration[0] * self._tick < at:
            return True
        return not wheel._slab.is_empty(wheel._due)

    def _come_up_before(self, at: int) -> None:
        """Let all buckets come up that have to before the time `at` (expiries come last in an instant: O3)."""
        wheel = self._bulk._wheel
        while True:
            ticks = wheel._next_ticks()
            if ticks < 0:
                return
            up = ticks * self._tick
            if up < self._now:
                up = self._now
            if up >= at:
                return
            self._now = up
            self._wakeups += 1
            target = up // self._tick
            while True:
                wheel._settle(target, _FOREVER)
                slot = wheel._next_due()
                if slot < 0:
                    break
                row = self._bulk._payload[slot]
                wheel._hand_out(slot)
                self._leave(up)
                late = up - (self._until[row] if self._absolute else self._starts[row] + self._until[row])
                self._late_high += late >> 32
                self._late_low += late & _LOW_HALF
                if late > self._late_most:
                    self._late_most = late
                if self._ends[row] < up or (self._ends[row] == up and not self._exclusive):
                    self._overtaken += 1

    def _leave(self, at: int) -> None:
        self._waited_high += at >> 32  # less the start, which was deducted then
        self._waited_low += at & _LOW_HALF
        self._last = at

    def stats(self) -> ReplayStats:
        """What was counted; after `drive`."""
        wheel = self._bulk.stats()
        return ReplayStats(
            operations=len(self._starts),
            completed=self._completed + self._at_start,
            expired=wheel.expired,
            completed_at_start=self._at_start,
            overtaken=self._overtaken,
            max_pending=self._most,
            pending_time=_whole(self._waited_high, self._waited_low),
            lateness_max=self._late_most,
            lateness_sum=_whole(self._late_high, self._late_low),
            started=wheel.started,
            cancelled=wheel.cancelled,
            cascaded=wheel.cascaded,
            levels=wheel.levels,
            wakeups=self._wakeups,
            bucket_operations=2 * self._bulk._wheel._queue._pushed - wheel.queued_buckets,
            first=self._first,
            last=self._last,
        )


def _whole(high: int, low: int) -> int:
    return (high << 32) + low


def sort_by_key(keys: array[int], rows: array[int]) -> None:
    """Sort `keys` (from 0 to 2**62), and `rows` with them, in place; stable. O(n) for each 11 bits of their range."""
    if len(rows) != len(keys):
        raise ValueError(f"rows has {len(rows)} elements and keys has {len(keys)}")
    if not _is_sorted(keys):
        _sort(keys, rows, zeros("q", len(keys)), zeros("i", len(keys)))


def _is_sorted(keys: array[int]) -> bool:
    before = 0
    for position in range(len(keys)):
        if keys[position] < before:
            return False
        before = keys[position]
    return True


def _sort(keys: array[int], rows: array[int], other_keys: array[int], other_rows: array[int]) -> None:
    count = len(keys)
    low = _FOREVER
    high = 0
    for position in range(count):
        key = keys[position]
        if key < low:
            low = key
        if key > high:
            high = key
    place = zeros("q", _DIGITS)
    shift = 0
    there = False  # whether the outcome of the last pass stands in the other pair
    while shift < 63 and (high - low) >> shift > 0:
        if there:
            _scatter(other_keys, other_rows, keys, rows, place, low, shift)
        else:
            _scatter(keys, rows, other_keys, other_rows, place, low, shift)
        there = not there
        shift += _DIGIT
    if there:
        for position in range(count):
            keys[position] = other_keys[position]
            rows[position] = other_rows[position]


def _scatter(
    keys: array[int],
    rows: array[int],
    to_keys: array[int],
    to_rows: array[int],
    place: array[int],
    low: int,
    shift: int,
) -> None:
    """One pass of the radix sort: by the digit of `key - low` at `shift`, what has the same digit in its order."""
    for digit in range(_DIGITS):
        place[digit] = 0
    for position in range(len(keys)):
        place[((keys[position] - low) >> shift) & _DIGIT_MASK] += 1
    total = 0
    for digit in range(_DIGITS):
        count = place[digit]
        place[digit] = total
        total += count
    for position in range(len(keys)):
        key = keys[position]
        digit = ((key - low) >> shift) & _DIGIT_MASK
        to = place[digit]
        place[digit] = to + 1
        to_keys[to] = key
        to_rows[to] = rows[position]
