"""Base class of the rivals: the engine's interface, over the engine's own slots.

The interface is that of `TimingWheel`: `add`, `remove`, `next_expiration`, `advance`, `len`. Each rival keeps its tasks
in the engine's slots, returns the engine's handles, and is compiled like the engine. So comparisons are between
designs, not between C and Python, or between integers and objects.

A subclass files a task (`_file`), says when it next has work (`_upcoming`), drops a stopped task (`_forget`), and moves
tasks that come due to the list `_due` (`_collect`). Time is an argument, in integer units; the owner serialises all
calls. `budget` bounds how many tasks one `advance` returns; all other due tasks stay due.
"""

from __future__ import annotations

from abeyant.engine.slab import Slab
from abeyant.engine.wheel import MAX_TIME

_MAX_TIME = MAX_TIME  # C constants when compiled
_FOREVER = (1 << 63) - 1


class Rival:
    """Base class of a timer queue; each design is a subclass."""

    __slots__ = ("_due", "_now", "_pending", "_slab")

    def __init__(self, start: int = 0) -> None:
        """Begin at the time `start`, in units. Raise ValueError if it is negative or beyond 2**62."""
        if not 0 <= start <= MAX_TIME:
            raise ValueError(f"start must be from 0 to 2**62 units, not {start}")
        self._now = start  # where the last `advance` got to, in units
        self._slab = Slab()
        self._due = self._slab.reserve(1)  # the list of what has come due and was not handed out
        self._pending = 0

    def add(self, deadline: int, item: object) -> int:
        """Start a task that returns `item` at `deadline` (units); return its handle.

        Raises OverflowError for a deadline beyond the design's reach.
        """
        if deadline > _MAX_TIME or deadline < -_MAX_TIME:
            raise OverflowError(f"deadline {deadline} is beyond 2**62 units")
        self._admit(deadline | 0)  # `|` refuses a float, which C would refuse or cut
        slot = self._slab.take_slot(deadline, item)
        self._pending += 1
        self._file(slot, deadline)
        return self._slab.handle(slot)

    def remove(self, handle: int) -> object | None:
        """Remove a pending task and return its item; return None if the task has already ended."""
        slot = self._slab.find(handle)
        if slot < 0:
            return None
        self._forget(slot, handle)
        self._pending -= 1
        return self._slab.release(slot)

    def next_expiration(self) -> int | None:
        """Return the time at which `advance` next has work; None if nothing is pending."""
        if self._pending == 0:
            return None
        return self._now if self._slab.first(self._due) != self._due else self._upcoming()

    def advance(self, now: int, budget: int | None = None) -> list[object]:
        """Advance to `now` and return the items that are due, at most `budget`. A past `now` does not turn time back.

        Raises OverflowError for a `now` beyond 2**62 units.
        """
        if now > _MAX_TIME:
            raise OverflowError(f"time {now} is beyond 2**62 units")
        if now | 0 > self._now:
            self._now = now
        self._collect()
        left = _FOREVER if budget is None else budget
        slab = self._slab
        items: list[object] = []
        slot = slab.first(self._due)
        while slot != self._due and left > 0:
            self._pending -= 1
            left -= 1
            items.append(slab.release(slot))
            slot = slab.first(self._due)
        return items

    def __len__(self) -> int:
        """Return how many tasks are pending, exactly. O(1)."""
        return self._pending

    # -- what a design is made of

    def _admit(self, deadline: int) -> None:
        """Raise OverflowError for a deadline beyond the design's reach."""

    def _file(self, slot: int, deadline: int) -> None:
        """Put a new task, in `slot`, into the design's data structure, or into `_due` if it is due."""
        raise NotImplementedError

    def _forget(self, slot: int, handle: int) -> None:
        """Remove a pending task from the design's data structure; the caller then unlinks its slot from lists."""

    def _upcoming(self) -> int:
        """Return the time of the next work. Called only if there are tasks, and none is due."""
        raise NotImplementedError

    def _collect(self) -> None:
        """Move all tasks that are due at `_now` to the list `_due`."""
        raise NotImplementedError

    def _filed(self) -> list[int]:
        """Return the slots of all tasks that are not due, for `_check`. Assert the design's own invariants."""
        raise NotImplementedError

    def _check(self) -> None:
        """Assert the invariants that hold between two calls. O(n); for tests."""
        self._slab._check()
        filed = self._filed()
        known = filed + self._slab.members(self._due)
        assert len(known) == len(set(known)), "a task is in one place"
        assert sorted(known) == self._slab.live_slots(), "every pending task can be found"
        assert len(known) == self._pending, "the pending count is exact"
