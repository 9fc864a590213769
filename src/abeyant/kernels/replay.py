"""Columnar replay: run the trace of one instance through the wheel; return outcomes, and counts of the wheel's work.

A trace is three columns of 64-bit integers, with a row for each operation: its start, its time-out, and the time at
which its condition came true. `replay` decides each outcome by the laws O1-O3. Each operation that had to wait goes
through the wheel: it is filed, cascaded, and stopped when it completes or handed out when it expires. The wheel is
`TraceWheel`, which does and counts the same as `TimingWheel`, for any tick and wheel size. So a what-if analysis is a
call with another tick. `replay` is a pure function of its arguments: nothing is shared or kept.

The outcome and the wheel
-------------------------
* **The outcome follows the laws, at exact deadlines**, whatever the tick: completed at max(start, end) where end <=
  deadline (`deadline="exclusive"`: end < deadline) or end <= start; expired at the deadline otherwise.
* **Lateness comes from the wheel.** The wheel can report an expiry only at the first tick at or after the deadline;
  lateness is that tick's time minus the deadline, in units, and 0 if the tick is 1. If an operation's condition came
  true in between, it expired by the laws, but would have completed with a real driver: `overtaken` counts these.

The driver
----------
The driver is ideal: it wakes exactly when the delay queue's first bucket expires, and needs no time to run. The clock
of the wheel moves only then, as in Kafka's `SystemTimer` and in our `ManualTimer`. A bucket that is queued with a
time that has passed already (the clock lagged behind) expires at the end of the same instant. Within an instant
progress comes before starts, and starts before expiries (O3). An operation whose condition holds when it starts is
never timed, as in the purgatory.

Cost: O(rows), however many are pending. The wheel reads columns in sequence; a radix sort brings the ends into order,
and the starts unless they are sorted. Memory: 21 bytes per row, 24 more unless the rows are sorted by start, and 16
more for each row that completes after a wait. The global interpreter lock is held throughout.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Literal, NamedTuple

from abeyant.engine.wheel import MAX_TIME, TimingWheel
from abeyant.kernels.buffers import integers, same_length, zeros
from abeyant.kernels.radix import sort_by_key
from abeyant.kernels.trace_wheel import TraceWheel

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NEVER = (1 << 63) - 1  # for `ends`: the condition never came true (any time after the deadline means the same)

_MAX_TIME = MAX_TIME  # C constants when compiled
_FOREVER = NEVER
_LOW_HALF = 0xFFFFFFFF
_MOST_ROWS = 1 << 30  # as many as a wheel holds


class ReplayStats(NamedTuple):
    """Counts of a replay's operations and of the wheel's work. Times are in the trace's unit."""

    operations: int
    completed: int
    expired: int
    completed_at_start: int  # of the completed: the condition held at the start, so no timer was started
    overtaken: int  # of the expired: the condition came true before the wheel, at most a tick late, reported it
    max_pending: int  # timers at once: the most after any instant's progress and starts, before its expiries
    pending_time: int  # the integral of pending timers over time; over the trace's length it is their mean
    lateness_max: int
    lateness_sum: int
    started: int  # timers
    cancelled: int  # timers stopped because their operation completed
    cascaded: int  # times that a timer was filed again because its bucket came up before its deadline
    levels: int  # wheels needed
    wakeups: int  # instants at which the driver woke: a bucket with a timer in it came up, or one was due at once
    bucket_operations: int  # buckets put into the delay queue and taken out of it
    first: int  # when the trace began: its first start; 0 of an empty trace
    last: int  # when its last timer had ended (expiries at the time at which the wheel reported them)


class Replayed(NamedTuple):
    """The outcome of each row, at the row's index."""

    completed: array[int]  # unsigned bytes (`B`): 1 completed, 0 expired
    ended_at: array[int]  # `q`: the time of the end by the laws, at exact deadlines
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
    and TypeError for other kinds of buffer; the message names the column, or the row that is wrong.
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
        raise ValueError(f"a trace of {rows:,} rows is too long: replay fewer than {_MOST_ROWS:,} rows at a time")
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
    TimingWheel(tick, wheel_size)  # raises ValueError for a tick or a size that no wheel can have
    run = _Run(starts, until, ends, absolute, exclusive, tick, wheel_size)
    run.judge()
    run.drive()
    return Replayed(run.completed, run.ended_at, run.stats())


class _Run:
    """The state of a running replay: its columns, its wheel, and its counts."""

    __slots__ = (
        "_absolute", "_at_start", "_completed", "_deadlines", "_ended_at", "_ends", "_exclusive", "_expired", "_first",
        "_last", "_late_high", "_late_low", "_late_most", "_most", "_now", "_overtaken", "_sorted", "_starts",
        "_stopped", "_tick", "_until", "_waited_high", "_waited_low", "_wakeups", "_wheel", "_wheel_size",
        "completed", "ended_at",
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
        self._tick = tick
        self._wheel_size = wheel_size
        self._starts = starts
        self._until = until
        self._ends = ends
        self._absolute = absolute
        self._exclusive = exclusive
        self.completed = zeros("B", len(starts))
        self.ended_at = zeros("q", len(starts))
        self._completed = self.completed
        self._ended_at = self.ended_at
        self._deadlines = zeros("q", len(starts))
        self._sorted = True  # by start
        self._stopped = 0  # completed after a wait
        self._at_start = 0
        self._expired = 0
        self._overtaken = 0
        self._most = 0
        self._late_most = 0
        self._late_high = 0  # sums that may exceed 64 bits, in two parts: above 32 bits, and below
        self._late_low = 0
        self._waited_high = 0
        self._waited_low = 0
        self._wakeups = 0
        self._first = 0
        self._last = 0

    # -- outcomes ------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Decide every outcome by the laws O1-O3. Raises ValueError at the first invalid row."""
        row = self._judge()
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
        limit = "deadline" if self._absolute else "time-out"
        raise ValueError(f"row {row}: the deadline is beyond 2**62 (start {start}, {limit} {until})")

    def _judge(self) -> int:
        """Decide every outcome; stop at the first invalid row and return it, else return -1."""
        completed = self._completed
        ended_at = self._ended_at
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
            self._deadlines[row] = deadline
            end = self._ends[row]
            if end <= start:
                completed[row] = 1
                ended_at[row] = start
                self._at_start += 1
            elif end < deadline or (end == deadline and not self._exclusive):
                completed[row] = 1
                ended_at[row] = end
                self._stopped += 1
                self._last = max(self._last, end)
                self._wait(end - start)
            else:
                ended_at[row] = deadline
        self._first = first if len(self._starts) else 0
        return -1

    # -- the wheel's part ----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Start timers in the order of time, and process the wheel's due buckets in between."""
        self._wheel = TraceWheel(
            self._tick, self._wheel_size, self._first, self._deadlines, self.completed, self.ended_at
        )
        self._last = max(self._last, self._first)
        end_at = zeros("q", self._stopped)
        self._collect_ends(end_at)
        sort_by_key(end_at, zeros("i", 0))
        if self._sorted:
            self._drive(self._starts, zeros("i", 0), end_at)
            return
        start_at = zeros("q", len(self._starts))
        start_row = zeros("i", len(self._starts))
        self._collect_starts(start_at, start_row)
        sort_by_key(start_at, start_row)
        self._drive(start_at, start_row, end_at)

    def _collect_starts(self, start_at: array[int], start_row: array[int]) -> None:
        for row in range(len(start_at)):
            start_at[row] = self._starts[row]
            start_row[row] = row

    def _collect_ends(self, end_at: array[int]) -> None:
        """Write into `end_at` the completion times of the operations that completed after a wait."""
        ends = 0
        for row in range(len(self._ended_at)):
            # The bound fails only if another thread changes a column meanwhile, which must not corrupt memory.
            if self._completed[row] and self._ended_at[row] > self._starts[row] and ends < len(end_at):
                end_at[ends] = self._ended_at[row]
                ends += 1

    def _drive(self, start_at: memoryview | array[int], start_row: array[int], end_at: array[int]) -> None:
        """Process all starts and the buckets due between them. Without `start_row` the rows are sorted by start."""
        wheel = self._wheel
        ends = len(end_at)
        next_end = 0
        started = 0
        for position in range(len(start_at)):
            at = start_at[position]
            if at > wheel.now:
                if wheel.may_wake_before(at):
                    self._wake_before(at)
                wheel.now = at
            row = position if self._sorted else start_row[position]
            if self._completed[row] and self._ended_at[row] <= at:
                continue  # the condition holds already: completed, and never timed
            wheel.file(row)
            started += 1
            while next_end < ends and end_at[next_end] <= at:  # at one instant progress comes before starts (O3)
                next_end += 1
            pending = started - next_end - self._expired
            if pending > self._most:
                self._most = pending
        self._wake_before(_FOREVER)

    def _wake_before(self, time: int) -> None:
        """Process all buckets that expire before `time` (expiries come last in an instant: O3)."""
        wheel = self._wheel
        while wheel.wakes_before(time):
            self._wakeups += 1
            target = wheel.now // self._tick
            wheel.settle(target)
            row = wheel.next_due()
            while row >= 0:
                self._record_expired(row, wheel.now)
                row = wheel.next_due()
                if row < 0:
                    wheel.settle(target)
                    row = wheel.next_due()

    def _record_expired(self, row: int, at: int) -> None:
        """Record that a row expired at the time `at`."""
        self._expired += 1
        self._last = max(self._last, at)
        late = at - self._ended_at[row]
        self._late_most = max(self._late_most, late)
        self._late_high += late >> 32
        self._late_low += late & _LOW_HALF
        self._wait(at - self._starts[row])
        if self._ends[row] < at or (self._ends[row] == at and not self._exclusive):
            self._overtaken += 1

    def _wait(self, time: int) -> None:
        self._waited_high += time >> 32
        self._waited_low += time & _LOW_HALF

    def stats(self) -> ReplayStats:
        """Return the counts. Call it after `drive`."""
        wheel = self._wheel
        return ReplayStats(
            operations=len(self._starts),
            completed=self._stopped + self._at_start,
            expired=self._expired,
            completed_at_start=self._at_start,
            overtaken=self._overtaken,
            max_pending=self._most,
            pending_time=_whole(self._waited_high, self._waited_low),
            lateness_max=self._late_most,
            lateness_sum=_whole(self._late_high, self._late_low),
            started=self._stopped + self._expired,
            cancelled=self._stopped,
            cascaded=wheel.cascaded,
            levels=wheel.levels,
            wakeups=self._wakeups,
            bucket_operations=wheel.bucket_operations(),
            first=self._first,
            last=self._last,
        )


def _whole(high: int, low: int) -> int:
    return (high << 32) + low
