"""A timing wheel over columns: start many tasks, stop many, expire into an array.

It follows the laws of `TimingWheel`, but has no Python object for each timer: a task is its handle and a *payload*, an
integer that the caller chooses (a row number, an id). One call processes a whole buffer, so the cost of a call is paid
once. Payloads are in an array of their own, by slot; the list of items in the wheel stays empty.

Memory: 36 bytes a slot; the arrays double as they fill.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.slab import grown
from abeyant.engine.wheel import MAX_TIME, TimingWheel, WheelStats
from abeyant.kernels.buffers import flags, integers, same_length, writable_integers, zeros

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_MAX_TIME = MAX_TIME  # a C constant when compiled
_FOREVER = (1 << 63) - 1
_SLOT_MASK = 0xFFFFFFFF
_CHUNK = 4096  # payloads that `advance` fetches at a time


class BulkWheel:
    """Pending tasks by deadline, each with an integer payload. Times are integers in the caller's unit.

    `tick` is the length of a tick in units, `wheel_size` the number of buckets per wheel, `start` the first time. As
    with `TimingWheel`, time is an argument, and the owner serialises all calls. Buffers are of signed 64-bit
    integers: see `buffers.integers`.
    """

    __slots__ = ("_payload", "_wheel")

    def __init__(self, tick: int = 1, wheel_size: int = 64, start: int = 0) -> None:
        """Raise ValueError as `TimingWheel` does."""
        self._wheel = TimingWheel(tick, wheel_size, start)
        self._payload = zeros("q", 256)  # by slot

    def _check_initialised(self) -> None:
        """Raise TypeError if `__init__` was never called, as compiled code would then read missing fields."""
        wheel: Any = self._wheel
        if wheel is None:
            raise TypeError("BulkWheel: its __init__ must be called before it is used")

    # -- start, stop, refresh ------------------------------------------------------------------------------

    def add_many(self, deadlines: ReadableBuffer, payloads: ReadableBuffer | None = None) -> array[int]:
        """Start a task for each deadline; return their handles (`q`), in the same order. O(1) a task.

        Without `payloads` a task's payload is its handle. A deadline already past is due at the next `advance`
        (T5). Raises OverflowError for a deadline beyond +-2**62 units, naming its position. If this or MemoryError is
        raised, no task is started.
        """
        self._check_initialised()
        when = integers(deadlines, "deadlines")
        what = when if payloads is None else integers(payloads, "payloads")
        same_length("payloads", what, "deadlines", len(when))
        bad = self._first_beyond(when)
        if bad >= 0:
            raise OverflowError(f"deadline {when[bad]} at position {bad} is beyond 2**62 units")
        handles = zeros("q", len(when))
        try:
            self._add_all(when, what, payloads is None, handles)
        except BaseException:
            self._remove_all(handles, zeros("B", len(handles)))  # handles that were not made yet are 0, which is none
            raise
        return handles

    def remove_many(self, handles: ReadableBuffer, removed: WriteableBuffer | None = None) -> int:
        """Stop the tasks of these handles; return how many were pending. O(1) a task.

        `removed`, a buffer of as many one-byte elements, gets 1 for each task that this call prevented from
        coming due, and 0 if the task had ended or its handle also stands earlier in `handles` (T3).
        """
        self._check_initialised()
        which = integers(handles, "handles")
        out = zeros("B", len(which)) if removed is None else flags(removed, "removed", len(which))
        return self._remove_all(which, out)

    def refresh_many(
        self, handles: ReadableBuffer, deadlines: ReadableBuffer, refreshed: WriteableBuffer | None = None
    ) -> int:
        """Give the tasks of these handles new deadlines; return how many were pending. O(1) a task.

        `refreshed`, a buffer of as many one-byte elements, gets 1 for each task that was pending, else 0. Raises
        OverflowError as `add_many` does, and then changes nothing.
        """
        self._check_initialised()
        which = integers(handles, "handles")
        when = integers(deadlines, "deadlines")
        same_length("deadlines", when, "handles", len(which))
        bad = self._first_beyond(when)
        if bad >= 0:
            raise OverflowError(f"deadline {when[bad]} at position {bad} is beyond 2**62 units")
        out = zeros("B", len(which)) if refreshed is None else flags(refreshed, "refreshed", len(which))
        return self._refresh_all(which, when, out)

    # -- expiry --------------------------------------------------------------------------------------------

    def advance(self, now: int, budget: int | None = None) -> array[int]:
        """Move the clock to `now`; return an `array("q")` of the due payloads, in the order of their deadlines' ticks.

        Laws and `budget` are the same as for `TimingWheel.advance`: when the budget runs out, `next_expiration()` is at
        or before `now`, and the next call continues. O(tasks handed out and cascaded).
        """
        self._check_initialised()
        left = _FOREVER if budget is None else budget
        due = array("q")
        chunk = zeros("q", min(_CHUNK, max(len(self), 1)))
        while left > 0:
            count, left = self._advance_into(now, chunk, left)
            due.frombytes(memoryview(chunk)[:count].cast("B"))
            if count < len(chunk):
                break
        return due

    def advance_into(self, now: int, payloads: WriteableBuffer, budget: int | None = None) -> int:
        """Advance as `advance` does, into the caller's buffer. Return the number of payloads written.

        A full buffer ends the call as a spent budget does: all other due tasks stay due.
        """
        self._check_initialised()
        out = writable_integers(payloads, "payloads")
        return self._advance_into(now, out, _FOREVER if budget is None else budget)[0]

    def next_expiration(self) -> int | None:
        """Return when `advance` next has work: at or before the earliest deadline; None when nothing is pending."""
        self._check_initialised()
        return self._wheel.next_expiration()

    # -- introspection -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the exact number of pending tasks. O(1)."""
        self._check_initialised()
        return len(self._wheel)

    def is_pending(self, handle: int) -> bool:
        """Return whether the task has neither come due nor been removed. O(1)."""
        self._check_initialised()
        return self._wheel._is_pending(handle)

    def deadline(self, handle: int) -> int | None:
        """Return the deadline of a pending task in units, rounded up to a tick; None when it has ended. O(1)."""
        self._check_initialised()
        return self._wheel.deadline(handle)

    def payload(self, handle: int) -> int | None:
        """Return the payload of a pending task; None when it has ended. O(1)."""
        self._check_initialised()
        return self._payload[handle & _SLOT_MASK] if self._wheel.is_pending(handle) else None

    @property
    def tick(self) -> int:
        """Return the length of a tick, in units."""
        self._check_initialised()
        return self._wheel.tick

    @property
    def wheel_size(self) -> int:
        """Return the number of buckets of each wheel."""
        self._check_initialised()
        return self._wheel.wheel_size

    @property
    def clock(self) -> int:
        """Return the time that the wheel has reached, in units, rounded down to a tick."""
        self._check_initialised()
        return self._wheel.clock

    def stats(self) -> WheelStats:
        """Return counts of what the wheel did since it was made. O(1)."""
        self._check_initialised()
        return self._wheel.stats()

    # -- whole columns, in C when compiled -----------------------------------------------------------------

    def _first_beyond(self, deadlines: memoryview) -> int:
        """Return the position of the first deadline that no wheel can hold, or -1."""
        for position in range(len(deadlines)):
            deadline = deadlines[position]
            if deadline > _MAX_TIME or deadline < -_MAX_TIME:
                return position
        return -1

    def _add_all(self, deadlines: memoryview, payloads: memoryview, own: bool, handles: array[int]) -> None:
        for position in range(len(deadlines)):
            handle = self._add(deadlines[position], 0 if own else payloads[position])
            handles[position] = handle
            if own:
                self._payload[handle & _SLOT_MASK] = handle

    def _add(self, deadline: int, payload: int) -> int:
        """Start one task; return its handle."""
        handle = self._wheel._add(deadline, None)
        slot = handle & _SLOT_MASK
        if slot >= len(self._payload):
            self._grow()
        self._payload[slot] = payload
        return handle

    def _grow(self) -> None:
        paused = pause_collection()
        try:
            self._payload = grown(self._payload, "q", self._wheel._slab._room)
        finally:
            resume_collection(paused)

    def _remove_all(self, handles: memoryview | array[int], removed: memoryview | array[int]) -> int:
        wheel = self._wheel
        count = 0
        for position in range(len(handles)):
            handle = handles[position]
            pending = wheel._is_pending(handle)
            if pending:
                wheel._remove(handle)
                count += 1
            removed[position] = pending
        return count

    def _refresh_all(self, handles: memoryview, deadlines: memoryview, refreshed: memoryview | array[int]) -> int:
        wheel = self._wheel
        count = 0
        for position in range(len(handles)):
            pending = wheel._refresh(handles[position], deadlines[position])
            count += pending
            refreshed[position] = pending
        return count

    def _advance_into(self, now: int, payloads: memoryview | array[int], budget: int) -> tuple[int, int]:
        """Advance as `advance` does; return the number of payloads written, and the rest of the budget."""
        wheel = self._wheel
        target = wheel._to_clock(now)
        count = 0
        room = len(payloads)
        while budget > 0 and count < room:
            budget = wheel._settle(target, budget)
            if budget <= 0:
                break
            slot = wheel._next_due()
            if slot < 0:
                break
            payloads[count] = self._payload[slot]
            wheel._hand_out(slot)
            count += 1
            budget -= 1
        return count, budget

    def _check(self) -> None:
        """Assert every invariant that must hold between two calls. O(buckets + pending); for tests."""
        self._check_initialised()
        self._wheel._check()
        for slot in self._wheel._slab.live_slots():
            assert slot < len(self._payload), "every task has a place for its payload"
            assert self._wheel._slab.items[slot] is None, "no Python object a task"
