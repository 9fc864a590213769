"""The handle of a task that waits in a timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyance.timer.units import to_seconds

if TYPE_CHECKING:
    from abeyance.timer.base import Timer


class TimerTask:
    """What `call_later` and `call_at` return: cancel it, refresh it, or let go of it (it runs all the same).

    Safe to use from any thread. All of it is O(1). The timer does not refer to its handles.
    """

    __slots__ = ("_cancelled", "_deadline", "_delay", "_handle", "_timer")

    # Written by the timer under its lock, or before anyone else has seen the handle.
    _timer: Timer
    _handle: int  # the wheel's; stale once the task has ended
    _delay: int  # nanoseconds
    _deadline: int  # nanoseconds on the timer's clock, as asked for
    _cancelled: bool

    def __init__(self, timer: Timer, delay: int, deadline: int) -> None:
        """For timers only: they set the handle when the wheel has taken the task."""
        self._timer = timer
        self._handle = 0
        self._delay = delay
        self._deadline = deadline
        self._cancelled = False

    def cancel(self) -> bool:
        """Stop the task; True exactly when this prevented its run (T3). False when it ran, runs, or had ended.

        The callback and its arguments are let go of at once (T4).
        """
        return self._timer._cancel(self)

    def refresh(self) -> bool:
        """Start the same delay again, from now; False when the task has ended. One store in the common case.

        For a task made by `call_at` the delay is what was left when it was made.
        """
        return self._timer._refresh(self)

    @property
    def pending(self) -> bool:
        """Whether it has neither begun to run nor been cancelled."""
        return self._timer._is_pending(self)

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` prevented its run."""
        return self._cancelled

    @property
    def deadline(self) -> float:
        """When it runs, in seconds on the timer's clock (`timer.time()`); at most one tick later."""
        return to_seconds(self._deadline)

    def __repr__(self) -> str:
        state = "cancelled" if self._cancelled else "pending" if self.pending else "ended"
        return f"<TimerTask {state} deadline={self.deadline:.9g}s on {self._timer!r}>"
