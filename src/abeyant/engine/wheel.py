# cython: cdivision=True
"""The hierarchical timing wheel: start, stop and refresh a task in O(1), however many are pending.

Sources: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7; Apache Kafka's
`TimingWheel`, `TimerTaskList` and `SystemTimer`, whose clock is driven by a delay queue of *buckets*.

The idea
--------
Time is cut into ticks. The first wheel has `wheel_size` buckets of one tick each; each overflow wheel has as
many buckets, each as long as the whole wheel below it, and is made when first needed. A task is filed by its
deadline in the lowest wheel that reaches that far. A bucket that gets its first task enters the delay queue, at
the time at which the bucket begins. When that time comes, the bucket *comes up*: its tasks *cascade*, that is, each
is filed anew in a lower wheel, until it is due. So a task at any distance runs with the precision of one tick, and
a clock that jumps visits occupied buckets only, never empty ticks.

    tick 1, wheel size 10, clock 0            222 is filed in the third wheel, bucket 2 (200-299)
      wheel 1: 10 buckets of 1                at 200 it cascades to the second wheel, bucket 2 (220-229)
      wheel 2: 10 buckets of 10               at 220 it cascades to the first wheel, bucket 2
      wheel 3: 10 buckets of 100              at 222 it is due

Ground rules
------------
* No thread, no clock, no callback, no lock in here. Time is an argument, in integer units of the caller's choice
  (the drivers use nanoseconds); inside, all is ticks. The owner serialises all calls.
* Deadlines round *up* to a tick, and the clock rounds *down*: never early (T1), at most one tick late (T2).
* `_clock` never goes back (T7), and moves only when nothing is due or cascading. So whatever is in `_due` has
  exactly the clock's tick as its deadline, and `_due` needs no sorting (T6). A task added with a deadline before
  the clock goes to `_overdue`, a heap, and runs before it.
* Within a tick, tasks run in the order in which they were added: a cascade pushes to the *front*, last task
  first, because a task still in a higher wheel was added before any that could be filed in a lower one.
  (A refreshed task keeps only the order of ticks.)
* A refresh to a later deadline is one store: the task stays where it is filed, and is filed anew when that
  bucket comes up. Hence: a filed task's deadline is at or after its bucket's expiration, not always inside it.
* If the delay queue's first bucket holds one task, and every other bucket comes up after that task's deadline, the
  clock goes straight to this deadline: no other task has to cascade before. (Sparse tasks on a fine tick.)
* Compiled, `//` and `%` are C's, which agrees with Python's where neither operand is negative. None is.
* The methods without an underscore are the Python API, and check their arguments. Drivers in C call those of the
  same name with an underscore.
* No item is dropped in here: ended items are returned to the caller, who drops them outside its lock.

It is one file on purpose: filing, cascading, refreshing and overdue tasks share the clock and its invariants, and a
quarter of the lines is introspection and `_check`.
"""

from __future__ import annotations

import operator
from array import array
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.delay_queue import DelayQueue
from abeyant.engine.slab import SLOT_MASK, Slab
from abeyant.signature import CLASS_SIGNATURE

# The largest deadline and clock, in units: with nanoseconds, 146 years. The room above it, up to 2**63,
# lets deadlines be rounded up and wheels reach past it without overflow.
MAX_TIME = 1 << 62
_MAX_TIME = MAX_TIME  # a C constant when compiled

_FOREVER = (1 << 63) - 1  # ticks: where the last wheel ends
_MAX_LEVELS = 64  # wheels of the smallest size, 2, reach MAX_TIME with 62 of them
_SLOT_MASK = SLOT_MASK
_FEW = 64  # entries that are not worth tidying up


class Bucket(NamedTuple):
    """The contents of a non-empty bucket; see `TimingWheel.buckets`."""

    level: int  # 0 is the first wheel
    index: int  # type: ignore[assignment]  # in its wheel (tuple.index goes unused)
    expiration: int  # in units: when it cascades or, on the first wheel, when its tasks are due
    deadlines: list[int]  # in units, rounded up to a tick, in the order in which the tasks were filed


class WheelStats(NamedTuple):
    """Counts of a wheel's work since it was made; see `TimingWheel.stats`."""

    pending: int  # tasks neither handed out nor removed
    started: int
    expired: int
    cancelled: int
    cascaded: int  # times that a task was filed anew because its bucket came up before its deadline
    levels: int  # wheels made so far
    queued_buckets: int  # buckets in the delay queue now, empty ones that have not come up included


class TimingWheel:
    """A timing wheel: pending tasks by deadline. Times and deadlines are integers in the caller's unit.

    `tick` is the length of a tick in units, `wheel_size` the number of buckets per wheel, `start` the first time.
    """

    __slots__ = (
        "_base", "_begin", "_cancelled", "_cascaded", "_cascading", "_clock", "_due", "_expired", "_first", "_horizon",
        "_levels", "_overdue", "_overdue_most", "_overdue_order", "_pending", "_queue", "_reach", "_shift", "_slab",
        "_span", "_started", "_tick", "_wheel_size",
    )  # fmt: skip
    __signature__ = CLASS_SIGNATURE

    def __init__(self, tick: int = 1, wheel_size: int = 64, start: int = 0) -> None:
        """Create an empty wheel. ValueError for a tick below 1, a wheel size outside 2 to 65,536, a negative start."""
        if not 1 <= whole_number(tick, "tick") <= MAX_TIME:
            raise ValueError(f"tick must be from 1 to 2**62 units, not {tick}")
        if not 2 <= whole_number(wheel_size, "wheel_size") <= 1 << 16:
            raise ValueError(f"wheel_size must be from 2 to 65,536 buckets, not {wheel_size}")
        if not 0 <= whole_number(start, "start") <= MAX_TIME:
            raise ValueError(f"start must be from 0 to 2**62 units, not {start}")
        self._tick = operator.index(tick)
        self._wheel_size = operator.index(wheel_size)
        self._clock = operator.index(start) // self._tick  # in ticks
        self._make_slab(0)
        self._overdue: list[tuple[int, int, int]] = []  # heap of (deadline, order of arrival, handle)
        self._overdue_most = _FEW
        self._overdue_order = 0
        self._queue = DelayQueue()  # of buckets, by expiration in ticks; a bucket is known by its sentinel
        # Of each wheel: the ticks that a bucket spans, as a power of 2 too (or -1), and that all its buckets span; its
        # first bucket's sentinel; which of its buckets the clock is in and the tick at which that began; and the first
        # tick that it cannot hold.
        self._levels = 0
        self._span = array("q", bytes(8 * _MAX_LEVELS))
        self._shift = array("q", bytes(8 * _MAX_LEVELS))
        self._reach = array("q", bytes(8 * _MAX_LEVELS))
        self._base = array("q", bytes(8 * _MAX_LEVELS))
        self._first = array("q", bytes(8 * _MAX_LEVELS))
        self._begin = array("q", bytes(8 * _MAX_LEVELS))
        self._horizon = array("q", bytes(8 * _MAX_LEVELS))
        self._pending = 0
        self._started = 0
        self._expired = 0
        self._cancelled = 0
        self._cascaded = 0
        self._add_level()

    def _make_slab(self, born: int) -> None:
        self._slab = Slab(born)
        self._due = self._slab.reserve(1)
        self._cascading = self._slab.reserve(1)

    def _check_initialised(self) -> None:
        """Raise TypeError if `__init__` was never called: C would read memory that is not there."""
        slab: Any = self._slab
        if slab is None:
            raise TypeError("TimingWheel: its __init__ must be called before it is used")

    def _successor(self, start: int) -> TimingWheel:
        """Return an empty wheel of the same tick and size that rejects this wheel's handles. Safe amid any change."""
        wheel = TimingWheel(self._tick, self._wheel_size, start)
        wheel._make_slab(self._slab._born + 2 * self._started + 2)  # no slot was used so often
        wheel._levels = 0
        wheel._add_level()
        return wheel

    # -- the port: add, remove, next_expiration, advance ---------------------------------------------------

    def add(self, deadline: int, item: object) -> int:
        """Add `item`, due at `deadline`; return its handle for `remove` and `refresh`. O(1).

        If the deadline has passed, the task is due at the next `advance` or `poll`, never here (T5); only such a task
        costs O(log overdue tasks). Raises OverflowError beyond +-2**62 units, TypeError for anything but an integer.
        """
        self._check_initialised()
        return self._add(whole_number(deadline, "deadline"), item)

    def _add(self, deadline: int, item: object) -> int:
        ticks = self._to_ticks(deadline)
        handle = self._slab.take(ticks, item)
        self._pending += 1
        self._started += 1
        self._file(handle & _SLOT_MASK, False)
        return handle

    def remove(self, handle: int) -> object | None:
        """Remove a pending task and return its item, or None when it has already ended. O(1).

        The task is unreachable from the wheel at once (T4). An item that is itself None cannot be told from an ended
        task; use `is_pending`.
        """
        self._check_initialised()
        return self._remove(whole_number(handle, "handle"))

    def _remove(self, handle: int) -> object | None:
        slot = self._slab.find(handle)
        if slot < 0:
            return None
        self._pending -= 1
        self._cancelled += 1
        item = self._slab.release(slot)
        if len(self._overdue) > 2 * self._pending + _FEW:
            self._forget_stale_overdue()
        return item

    def refresh(self, handle: int, deadline: int) -> bool:
        """Give a pending task a new deadline; return False if it has already ended. O(1).

        For a later deadline this is one store: the task is filed anew when its present bucket comes up.
        """
        self._check_initialised()
        return self._refresh(whole_number(handle, "handle"), whole_number(deadline, "deadline"))

    def _refresh(self, handle: int, deadline: int) -> bool:
        slot = self._slab.find(handle)
        if slot < 0:
            return False
        ticks = self._to_ticks(deadline)
        filed = self._slab.deadline[slot]
        self._slab.deadline[slot] = ticks
        if ticks < filed or filed <= self._clock:  # nearer, or no longer in a bucket that will come up
            self._slab.unlink(slot)
            self._file(slot, False)
        return True

    def _foresee(self, handle: int) -> None:
        """Prefetch the task for a `_refresh` that follows: the cache miss then overlaps with reading the clock."""
        self._slab.fetch(handle)

    def is_pending(self, handle: int) -> bool:
        """Return whether the task has neither been handed out nor removed. O(1)."""
        self._check_initialised()
        return self._is_pending(whole_number(handle, "handle"))

    def _is_pending(self, handle: int) -> bool:
        return self._slab.find(handle) >= 0

    def next_expiration(self) -> int | None:
        """Return when `advance` next has work: at or before the earliest deadline; None when nothing is pending.

        This is the time at which the earliest bucket comes up; in a higher wheel its tasks only cascade then. If a task
        is already due, it is not after the clock. O(1); O(log buckets) once per emptied bucket.
        """
        self._check_initialised()
        upcoming = self._upcoming()
        return None if upcoming < 0 else upcoming

    def _upcoming(self) -> int:
        """Return `next_expiration`, or -1 if nothing is pending."""
        ticks = self._next_ticks()
        return -1 if ticks < 0 else ticks * self._tick

    def earliest(self) -> tuple[int, list[object]] | None:
        """Return the earliest deadline, in units, rounded up to a tick, and the items that have it; None without tasks.

        For virtual clocks, which stop exactly there; at `next_expiration` tasks may only cascade. This reads the
        buckets that come up by then: O(tasks that cascade before the clock gets there).
        """
        self._check_initialised()
        paused = pause_collection()
        try:
            slots = self._earliest()
            if not slots:
                return None
            return self._slab.deadline[slots[0]] * self._tick, [self._slab.items[slot] for slot in slots]
        finally:
            resume_collection(paused)

    def _earliest(self) -> list[int]:
        """Return the slots that have the earliest deadline, in no particular order."""
        slab = self._slab
        queue = self._queue
        slots: list[int] = []
        self._next_ticks()  # drops what is stale
        if self._overdue:
            earliest = self._overdue[0][0]
            return list({slab.find(e[2]) for e in self._overdue if e[0] == earliest and self._is_overdue(e)})
        earliest = self._read_earliest(self._due, _FOREVER, slots)
        earliest = self._read_earliest(self._cascading, earliest, slots)
        read: list[tuple[int, int]] = []
        try:
            while len(queue) and queue.first_expiration() <= earliest:
                read.append((queue.first_expiration(), queue.first_bucket()))
                earliest = self._read_earliest(queue.pop(), earliest, slots)
        finally:
            for expiration, sentinel in read:
                queue.push(expiration, sentinel)
        return slots

    def _read_earliest(self, sentinel: int, earliest: int, slots: list[int]) -> int:
        """Add a bucket's slots to `slots`, keep those with the earliest deadline, and return that deadline."""
        slab = self._slab
        slot = slab.first(sentinel)
        while slot != sentinel:
            deadline = slab.deadline[slot]
            if deadline < earliest:
                earliest = deadline
                slots.clear()
            if deadline == earliest:
                slots.append(slot)
            slot = slab.first(slot)
        return earliest

    def advance(self, now: int, budget: int | None = None) -> list[object]:
        """Move the clock to `now` and return the items due, in the order of their deadlines' ticks.

        `budget` bounds the work: how many tasks may be handed out or cascaded in this call. When it runs out, the
        other tasks stay due, `next_expiration()` is at or before `now`, and the next call continues in the same order.
        A `now` before the clock is ignored: the clock stays (T7). O(tasks handed out and cascaded).
        """
        self._check_initialised()
        left = _FOREVER if budget is None else whole_number(budget, "budget")
        target = self._to_clock(whole_number(now, "time"))
        due: list[object] = []
        while left > 0:
            left = self._settle(target, left)
            if left <= 0:
                break
            slot = self._next_due()
            if slot < 0:
                break
            due.append(self._hand_out(slot))
            left -= 1
        return due

    def poll(self, now: int, budget: int = 1024) -> object | None:
        """Move the clock towards `now` and return the next item due, or None.

        For drivers that run each task before they poll again, so that a task that an earlier task cancels is never
        handed out. At most `budget` tasks cascade in one call. If it returns None while `next_expiration()` is at or
        before `now`, there is more to do.
        """
        self._check_initialised()
        return self._poll(whole_number(now, "time"), whole_number(budget, "budget"))

    def _poll(self, now: int, budget: int) -> object | None:
        if self._settle(self._to_clock(now), budget) <= 0:
            return None
        slot = self._next_due()
        return None if slot < 0 else self._hand_out(slot)

    def __len__(self) -> int:
        """Return the exact number of pending tasks. O(1)."""
        return self._pending

    # -- filing --------------------------------------------------------------------------------------------

    def _to_ticks(self, deadline: int) -> int:
        if deadline > _MAX_TIME or deadline < -_MAX_TIME:
            raise OverflowError(f"deadline {deadline} is beyond 2**62 units")
        if deadline < 0:
            return -(-deadline // self._tick)
        ticks = deadline // self._tick
        return ticks if ticks * self._tick == deadline else ticks + 1

    def _to_clock(self, now: int) -> int:
        if now > _MAX_TIME or now < -_MAX_TIME:
            raise OverflowError(f"time {now} is beyond 2**62 units")
        if now < self._clock * self._tick:
            return self._clock
        return now // self._tick

    def _file(self, slot: int, cascading: bool) -> None:
        """Link a live, unlinked slot into its deadline's bucket, or add it to the due or overdue tasks."""
        slab = self._slab
        ticks = slab.deadline[slot]
        if ticks > self._clock:
            level = 0
            while ticks >= self._horizon[level]:
                level += 1
                if level == self._levels:
                    self._add_level()
            # Counted from the clock's bucket: one division, where that of a tick's number would need two. And a shift
            # where that will do, for processors divide slowly.
            ahead = ticks - self._begin[level]
            ahead = ahead >> self._shift[level] if self._shift[level] >= 0 else ahead // self._span[level]
            bucket = self._first[level] + ahead
            sentinel = self._base[level] + (bucket if bucket < self._wheel_size else bucket - self._wheel_size)
            expiration = self._begin[level] + ahead * self._span[level]
            if slab.deadline[sentinel] != expiration:
                slab.deadline[sentinel] = expiration
                self._queue.push(expiration, sentinel)
        elif ticks == self._clock:
            sentinel = self._due
        else:  # stays on a list of its own, where `release` finds it all the same
            self._file_overdue(ticks, slab.handle(slot))
            return
        if cascading:
            slab.push_front(sentinel, slot)
        else:
            slab.push_back(sentinel, slot)

    def _add_level(self) -> None:
        level = self._levels
        span = self._reach[level - 1] if level else 1
        self._span[level] = span
        self._shift[level] = span.bit_length() - 1 if span & (span - 1) == 0 else -1
        self._reach[level] = span * self._wheel_size if span <= _FOREVER // self._wheel_size else _FOREVER
        self._base[level] = self._slab.reserve(self._wheel_size)
        self._levels = level + 1
        self._place(level)

    def _place(self, level: int) -> None:
        """Record the clock's position in the wheel of `level`."""
        number = self._clock // self._span[level]
        begin = number * self._span[level]
        self._first[level] = number % self._wheel_size
        self._begin[level] = begin
        # Past 2**63 the wheel is the last and holds every deadline there can be.
        self._horizon[level] = begin + self._reach[level] if begin <= _FOREVER - self._reach[level] else _FOREVER

    # -- time ----------------------------------------------------------------------------------------------

    def _next_ticks(self) -> int:
        """Return `next_expiration` in ticks, -1 for none. Drop buckets that have emptied."""
        slab = self._slab
        if self._overdue:
            self._drop_stale_overdue()
        if self._overdue or not slab.is_empty(self._due) or not slab.is_empty(self._cascading):
            return self._clock
        while len(self._queue):
            sentinel = self._queue.first_bucket()
            if not slab.is_empty(sentinel):
                return self._queue.first_expiration()
            slab.deadline[self._queue.pop()] = -1
        return -1

    def _settle(self, target: int, budget: int) -> int:
        """Cascade, and move the clock towards `target`, until something is due or `target` is reached.

        Returns the budget that is left. With 0 or less it ran out midway, and the work has to be continued.
        """
        slab = self._slab
        if not slab.is_empty(self._due) and slab.is_empty(self._cascading) and not self._cascade_is_due():
            return budget
        while True:
            slot = slab.last(self._cascading)
            while slot != self._cascading:
                if budget <= 0:
                    return 0
                budget -= 1
                slab.unlink(slot)
                if slab.deadline[slot] > self._clock:
                    self._cascaded += 1
                self._file(slot, True)
                slot = slab.last(self._cascading)
            if self._cascade_is_due():
                # The lowest wheel comes first (its sentinels have the lower numbers): what cascades from higher
                # ones is older and goes in front of it.
                sentinel = self._queue.pop()
                slab.deadline[sentinel] = -1
                slab.move_all(sentinel, self._cascading)
                continue
            upcoming = self._next_ticks()
            if 0 <= upcoming <= self._clock or self._clock == target:
                return budget
            if upcoming < 0 or upcoming > target:
                self._set_clock(target)
            elif budget > 0 and self._reach_lone(target):
                budget -= 1
            else:
                self._set_clock(upcoming)

    def _cascade_is_due(self) -> bool:
        """Return whether a bucket that comes up at the clock's tick has yet to cascade.

        If tasks are due as well, a budget ran out, and the tasks that were still cascading have been removed since.
        """
        return len(self._queue) > 0 and self._queue.first_expiration() <= self._clock

    def _reach_lone(self, target: int) -> bool:
        """Move the clock to the next task's deadline if this is known without cascading. Return whether it moved."""
        slab = self._slab
        sentinel = self._queue.first_bucket()
        slot = slab.first(sentinel)
        deadline = slab.deadline[slot]
        if slab.last(sentinel) != slot or deadline > target or deadline >= self._queue.second_expiration():
            return False
        self._queue.pop()
        slab.deadline[sentinel] = -1
        self._set_clock(deadline)
        slab.unlink(slot)
        slab.push_back(self._due, slot)
        return True

    def _set_clock(self, ticks: int) -> None:
        self._clock = ticks
        for level in range(self._levels):
            if ticks - self._begin[level] < self._span[level]:
                break  # still in the same bucket of this wheel, and so of every higher one
            self._place(level)

    # -- due tasks -----------------------------------------------------------------------------------------

    def _next_due(self) -> int:
        """Return the slot to hand out next, or -1."""
        if self._overdue:
            self._drop_stale_overdue()
            if self._overdue:
                return self._slab.find(heappop(self._overdue)[2])
        slot = self._slab.first(self._due)
        return -1 if slot == self._due else slot

    def _file_overdue(self, ticks: int, handle: int) -> None:
        if len(self._overdue) >= self._overdue_most:
            self._forget_stale_overdue()
        # Before the push the task is on no list: a finaliser, or another thread that runs meanwhile, would miss it.
        paused = pause_collection()
        try:
            heappush(self._overdue, (ticks, self._overdue_order, handle))
        finally:
            resume_collection(paused)
        self._overdue_order += 1

    def _drop_stale_overdue(self) -> None:
        """Pop entries whose task was removed, or refreshed to another deadline, from the top of the heap."""
        while self._overdue and not self._is_overdue(self._overdue[0]):
            heappop(self._overdue)

    def _forget_stale_overdue(self) -> None:
        """Drop all stale entries of the heap. Called when they outnumber the others, so amortised O(1) per entry."""
        paused = pause_collection()
        try:
            self._overdue = [entry for entry in self._overdue if self._is_overdue(entry)]
            heapify(self._overdue)
            self._overdue_most = 2 * len(self._overdue) + _FEW
        finally:
            resume_collection(paused)

    def _is_overdue(self, entry: tuple[int, int, int]) -> bool:
        slot = self._slab.find(entry[2])
        return slot >= 0 and self._slab.deadline[slot] == entry[0]

    def _hand_out(self, slot: int) -> object:
        self._pending -= 1
        self._expired += 1
        return self._slab.release(slot)

    # -- closing and introspection -------------------------------------------------------------------------

    def drain(self) -> list[tuple[int, object]]:
        """Remove all tasks; return (deadline in units, item) in the order in which they would have run.

        O(n log n). The tasks count as cancelled.
        """
        self._check_initialised()
        drained = []
        for handle in self._in_order():
            slot = self._slab.find(handle)
            if slot >= 0:
                deadline = self._slab.deadline[slot] * self._tick
                drained.append((deadline, self._remove(handle)))
        self._overdue = []
        return drained

    def _set_back(self, now: int) -> None:
        """Move the clock back to `now`; every task keeps its handle and its deadline. O(n log n).

        For an owner whose clock has been replaced by another clock; the time of one clock never goes back (T7).
        """
        slab = self._slab
        paused = pause_collection()
        try:
            handles = self._in_order()
            for handle in handles:
                slab.unlink(handle & _SLOT_MASK)
            self._overdue = []
            self._next_ticks()  # drops the buckets, which have all emptied
            self._clock = now // self._tick
            for level in range(self._levels):
                self._place(level)
            for handle in handles:
                slab.unlink(handle & _SLOT_MASK)  # once more: one that was overdue may be there twice
                self._file(handle & _SLOT_MASK, False)
        finally:
            resume_collection(paused)

    def _in_order(self) -> list[int]:
        """Return the handles of all pending tasks, in the order in which they would run. O(n log n)."""
        self._settle(self._clock, _FOREVER)
        overdue = [entry[2] for entry in sorted(self._overdue) if self._is_overdue(entry)]
        due = [self._slab.handle(slot) for slot in self._slab.members(self._due)]
        filed: list[tuple[int, int, int, int]] = []
        for level in range(self._levels - 1, -1, -1):  # within a tick the higher wheel's tasks are older
            for index in range(self._wheel_size):
                for order, slot in enumerate(self._slab.members(self._base[level] + index)):
                    filed.append((self._slab.deadline[slot], -level, order, self._slab.handle(slot)))
        return overdue + due + [entry[3] for entry in sorted(filed)]

    @property
    def tick(self) -> int:
        """The length of a tick, in units."""
        return self._tick

    @property
    def wheel_size(self) -> int:
        """Return the number of buckets of each wheel."""
        return self._wheel_size

    @property
    def clock(self) -> int:
        """The time the wheel has reached, in units, rounded down to a tick."""
        return self._now()

    def _now(self) -> int:
        return self._clock * self._tick

    def deadline(self, handle: int) -> int | None:
        """Return the deadline of a pending task in units, rounded up to a tick; None when it has ended. O(1)."""
        self._check_initialised()
        slot = self._slab.find(whole_number(handle, "handle"))
        return None if slot < 0 else self._slab.deadline[slot] * self._tick

    def items(self) -> list[object]:
        """Return the items of all pending tasks, in no particular order. O(slots ever used)."""
        self._check_initialised()
        return [self._slab.items[slot] for slot in self._slab.live_slots()]

    def spans(self) -> list[int]:
        """Return how long each wheel made so far is, in units: tick * wheel_size, tick * wheel_size**2, ..."""
        reach = self._tick  # a Python integer: the last wheels reach past 2**63
        spans = []
        for _ in range(self._levels):
            reach *= self._wheel_size
            spans.append(reach)
        return spans

    def buckets(self) -> list[Bucket]:
        """Return the buckets that hold a task, in the order of level and index. O(buckets + pending)."""
        found = []
        for level in range(self._levels):
            for index in range(self._wheel_size):
                sentinel = self._base[level] + index
                slots = self._slab.members(sentinel)
                if slots:
                    deadlines = [self._slab.deadline[slot] * self._tick for slot in slots]
                    found.append(Bucket(level, index, self._slab.deadline[sentinel] * self._tick, deadlines))
        return found

    def stats(self) -> WheelStats:
        """Return the counts since the wheel was made. O(1)."""
        self._check_initialised()
        return WheelStats(
            pending=self._pending,
            started=self._started,
            expired=self._expired,
            cancelled=self._cancelled,
            cascaded=self._cascaded,
            levels=self._levels,
            queued_buckets=len(self._queue),
        )

    def _check(self) -> None:
        """Assert every invariant that must hold between two calls. O(buckets + pending); for tests."""
        self._check_initialised()
        slab = self._slab
        slab._check()
        live = set(slab.live_slots())
        assert len(live) == self._pending, "the pending count is exact"
        assert self._started == self._pending + self._expired + self._cancelled, "every task ends at most once"

        seen: set[int] = set()
        for slot in slab.members(self._due):
            assert slab.deadline[slot] == self._clock, "what is due, is due at the clock's very tick"
            seen.add(slot)
        for slot in slab.members(self._cascading):
            seen.add(slot)
        self._queue._check()
        queued = {sentinel: expiration for expiration, sentinel in self._queue.entries()}
        assert len(queued) == len(self._queue), "a bucket is in the delay queue once"
        for level in range(self._levels):
            span = self._span[level]
            assert span == self._wheel_size**level
            assert self._shift[level] == (-1 if span.bit_count() > 1 else span.bit_length() - 1)
            number = self._clock // span
            assert self._begin[level] == number * span
            assert self._first[level] == number % self._wheel_size
            end = self._wheel_size * span + number * span
            assert self._horizon[level] == min(end, _FOREVER), "the horizon moves with the clock"
            for index in range(self._wheel_size):
                sentinel = self._base[level] + index
                slots = slab.members(sentinel)
                expiration = slab.deadline[sentinel]
                assert queued.get(sentinel, -1) == expiration, "queued at its expiration, or not at all"
                if not slots:
                    continue
                assert expiration >= self._clock, "no bucket with a task has been passed by"
                assert expiration % span == 0
                assert expiration // span % self._wheel_size == index
                for slot in slots:
                    assert slot not in seen, "a task is in one place"
                    assert slab.deadline[slot] >= expiration, "no task is met after its deadline"
                    seen.add(slot)
        overdue = set()
        for entry in self._overdue:
            if self._is_overdue(entry):
                assert entry[0] < self._clock
                overdue.add(slab.find(entry[2]))
        assert not overdue & seen, "an overdue task is in no bucket"
        assert overdue | seen == live, "every pending task can be found"


def whole_number(value: int, name: str) -> int:
    """Return an integer, clamped to 64 bits: still beyond every limit. Raises TypeError for anything else."""
    if type(value) is not int:
        try:
            value = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be an integer, not {value!r}") from None
    try:
        return value
    except OverflowError:  # compiled
        return _FOREVER if value > 0 else -_FOREVER
