"""The task that `call_every` of timers and loops returns: it reschedules itself with `call_at`."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from abeyant.forking import reset_in_child
from abeyant.timer.units import as_float

# Seconds: the resolution of timers. With shorter intervals many runs would have the same deadline as a float.
_SHORTEST = 1e-9


class RepeatingTask:
    """A callback that runs at `start + interval`, `start + 2 * interval` and so on, until it is cancelled.

    Each deadline is computed from the start, so deadlines do not drift. The next run is scheduled when a run has ended,
    so runs do not overlap. If a run is late by whole intervals, the runs in these intervals are skipped and counted in
    `missed`. The callback's errors are reported like the errors of any task, and the next runs follow. Safe to use from
    any thread if its timer is.
    """

    __slots__ = (
        "__weakref__", "_args", "_callback", "_ended", "_interval", "_lock", "_missed", "_options", "_owner",
        "_restarts", "_run", "_start", "_task",
    )  # fmt: skip

    def __init__(
        self,
        owner: Any,
        interval: float | timedelta,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        **options: Any,
    ) -> None:
        """Not for users. Start a task for `owner`, a timer or loop; `options` are passed to its `call_at`.

        Raises TypeError if `interval` is not a time, ValueError if it is below a nanosecond or not finite.
        """
        length = as_float(interval, "interval")
        if not _SHORTEST <= length < math.inf:
            raise ValueError(f"interval must be finite, and at least a nanosecond (1e-9 s), not {interval!r}")
        self._owner = weakref.ref(owner)
        self._interval = length
        self._callback = callback
        self._args = args
        self._options = options
        self._lock = threading.RLock()  # reentrant: a finaliser may cancel while it is held
        self._ended = False
        self._restarts = 0
        self._missed = 0
        reset_in_child(self)
        with self._lock:  # the first run may begin before `_task` is set
            self._begin(owner)

    def cancel(self) -> bool:
        """Stop the task. Return True exactly when it would have run again. A run that has begun continues. O(1)."""
        with self._lock:
            was_active, self._ended = not self._ended, True
            self._task.cancel()  # too late for a run that an executor has: that checks `_ended`
            owner = self._owner()
            return was_active and owner is not None and not _is_closed(owner)

    def refresh(self) -> bool:
        """Restart the interval: the next run is one interval from now. Return False if the task was cancelled."""
        with self._lock:
            owner = self._owner()
            if self._ended or owner is None:
                return False
            self._task.cancel()
            self._begin(owner)
            self._restarts += 1
            return not self._ended

    @property
    def interval(self) -> float:
        """Return the seconds from one run to the next."""
        return self._interval

    @property
    def missed(self) -> int:
        """Return the number of runs skipped so far, because the run before was late or took too long."""
        return self._missed

    @property
    def deadline(self) -> float:
        """Return the deadline of the current run, or else the next, in seconds on the timer's or loop's clock."""
        return self._start + self._run * self._interval

    @property
    def cancelled(self) -> bool:
        """Return whether the task has stopped: it was cancelled, its timer or loop closed, or a fork made this copy."""
        return self._ended

    def __call__(self) -> object:
        """Run the callback, then schedule the next run. The timer calls this."""
        with self._lock:
            if self._ended:
                return None
            restarts = self._restarts
        try:
            return self._callback(*self._args)  # a coroutine is reported by the timer, as of any callback
        finally:
            with self._lock:
                owner = self._owner()
                if not self._ended and restarts == self._restarts and owner is not None:
                    self._go_on(owner)

    def _reset_in_child(self) -> object:
        """Cancel the task in a forked child, as it continues in the parent."""
        self._lock = threading.RLock()
        self._ended = True
        return None

    def _begin(self, owner: Any) -> None:
        self._start: float = owner.time()
        self._run = 1
        self._arm(owner)

    def _go_on(self, owner: Any) -> None:
        """Schedule the first run whose deadline is in the future; count the skipped runs."""
        now, following = owner.time(), self._run + 1
        run = max(following, math.floor((now - self._start) / self._interval))  # an estimate, corrected below
        while run > following and self._start + (run - 1) * self._interval > now:
            run -= 1
        while self._start + run * self._interval <= now:
            run += 1
        self._missed += run - following
        self._run = run
        self._arm(owner)

    def _arm(self, owner: Any) -> None:
        try:
            self._task = owner.call_at(self.deadline, self, **self._options)
        except RuntimeError:
            if not _is_closed(owner) or not self._running_before():
                raise
            self._ended = True

    def _running_before(self) -> bool:
        """Return whether a run was scheduled before. If not, the caller raises the error that the timer is closed."""
        return hasattr(self, "_task")

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: it is the one handle of its runs")

    def __repr__(self) -> str:
        state = "cancelled" if self._ended else f"next at {self.deadline:.9g}s"
        missed = f", {self._missed} missed" if self._missed else ""
        return f"<RepeatingTask of {self._callback!r} every {self._interval:.9g}s, {state}{missed}>"


def _is_closed(owner: Any) -> bool:
    is_closed = getattr(owner, "is_closed", None)
    return bool(owner.closed if is_closed is None else is_closed())
