"""The handle of a pending task in a timer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abeyant.engine import uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.weak import owner_of
else:
    from cython.cimports.abeyant.timer.weak import owner_of

from abeyant.signature import CLASS_SIGNATURE
from abeyant.timer.units import to_seconds

CANCELLED = -1  # replaces the handle of a cancelled task; the wheel's handles are never negative
_CANCELLED = CANCELLED  # a C constant when compiled


class TaskOwner:
    """The methods that a `TimerTask` calls on its timer. Implemented by timers."""

    __slots__ = ()

    def _cancel(self, task: TimerTask) -> bool:
        raise NotImplementedError

    def _refresh(self, task: TimerTask) -> bool:
        raise NotImplementedError

    def _is_pending(self, task: TimerTask) -> bool:
        raise NotImplementedError


@cython.no_gc
@cython.freelist(1024)
@cython.cclass
class TimerTask:
    """The handle of a task, from `call_later` or `call_at`, to cancel or refresh it. Dropped, the task still runs.

    Safe to use from any thread. All methods are O(1).

    The timer does not refer to its handles, and a handle refers to its timer weakly, so no cycle runs through a handle.
    Compiled, a handle takes 48 bytes, and the garbage collector does not track it.
    """

    __slots__ = ("_deadline", "_delay", "_handle", "_owner")
    __signature__ = CLASS_SIGNATURE

    # Written by the timer under its lock, or before anyone else has seen the handle.
    _owner: Any  # a weak reference to a TaskOwner
    _handle: int  # the wheel's; stale once the task has ended
    _delay: int  # nanoseconds
    _deadline: int  # nanoseconds on the timer's clock, not rounded to a tick

    def __init__(self) -> None:
        """Not for users. Raise TypeError, as only a timer's `call_later` and `call_at` create tasks."""
        raise TypeError("a TimerTask cannot be created directly: use a timer's call_later or call_at")

    def cancel(self) -> bool:
        """Cancel the task. Return whether this prevented its run (T3): False if it ran, is running, or was cancelled.

        The references to the callback and its arguments are dropped at once (T4).
        """
        owner = owner_of(self._owner)
        return owner is not None and owner._cancel(self)

    def refresh(self) -> bool:
        """Restart the task's delay from now. Return False if the task has ended. Usually this is one store in memory.

        For a task made by `call_at` the delay is the time from that call to its deadline.
        """
        owner = owner_of(self._owner)
        return owner is not None and owner._refresh(self)

    @property
    def pending(self) -> bool:
        """Return whether the task has neither run nor been cancelled; `TimerStats.pending` counts such tasks."""
        owner = owner_of(self._owner)
        return owner is not None and owner._is_pending(self)

    @property
    def cancelled(self) -> bool:
        """Return whether `cancel` prevented its run. A property; asyncio's `TimerHandle.cancelled()` is a method."""
        return self._handle == _CANCELLED

    @property
    def deadline(self) -> float:
        """Return the deadline, in seconds on the timer's clock (`timer.time()`). asyncio calls this `when()`.

        The task is due at most one tick later.
        """
        return to_seconds(self._deadline)

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: it is the one handle of its task")

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled else "pending" if self.pending else "ended"
        return f"<TimerTask {state} deadline={self.deadline:.9g}s on {owner_of(self._owner)!r}>"
