# cython: nonecheck=True
"""A timer on a virtual clock, which moves only by `advance`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Unpack

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.clock import monotonic_ns
else:
    from cython.cimports.abeyant.timer.clock import monotonic_ns

from abeyant.engine.wheel import whole_number
from abeyant.timer.base import ErrorHandler, Timer, Ts, enter, leave
from abeyant.timer.task import TimerTask
from abeyant.timer.units import NEVER, to_nanoseconds, to_seconds

_CASCADES = 1024  # maximum number of tasks to cascade before the lock is released
_FOREVER = NEVER


class ManualTimer(Timer):
    """A timer on a virtual clock. `advance` runs the due tasks on the calling thread, in order, each at its own time.

    For tests and simulations. By default the tick is 1 ns, so that nothing is rounded, and the wheels are large, so
    that a few of them cover long delays. To reproduce another timer's rounding, pass its tick. Callbacks may start,
    cancel and refresh tasks, and advance the clock themselves.

    Examples:
        >>> timer = ManualTimer()
        >>> task = timer.call_later(30.0, print, "no answer in 30 s")
        >>> timer.advance(30.0)
        no answer in 30 s
        1
    """

    __slots__ = ("_time",)

    def __init__(
        self,
        *,
        tick: float | timedelta = 1e-9,
        wheel_size: int = 1024,
        start: float = 0.0,
        on_error: ErrorHandler | None = None,
    ) -> None:
        """Create a timer; `tick`, `start` in seconds. `on_error(error, callback)` gets errors, else they are logged."""
        start_ns = to_nanoseconds(start, "start")
        if not 0 <= start_ns < NEVER:
            raise ValueError(f"start must be from 0 to 126 years, not {start!r} seconds")
        super().__init__(tick, wheel_size, start_ns, on_error)
        self._time = start_ns

    def call_later(
        self, delay: float | timedelta, callback: Callable[[Unpack[Ts]], object], *args: Unpack[Ts]
    ) -> TimerTask:
        """Run `callback(*args)` once, `delay` seconds from now; see `Timer.call_later`. O(1)."""
        # Here again because the interpreter calls a method of the object's own class faster.
        return self._start_later(callback, args, to_nanoseconds(delay, "delay"))

    def _now(self) -> int:
        return self._time

    def advance(
        self,
        seconds: float | timedelta,
        *,
        max_tasks: int | None = None,
        max_seconds: float | timedelta | None = None,
    ) -> int:
        """Advance the clock by `seconds` and run the tasks that come due on the way; return the number that ran.

        During a callback the clock shows the time at which that task came due, so a task that a callback starts
        runs in the same call if its deadline is reached. Raises ValueError if `seconds` is negative (T7).

        A budget bounds the time that a call takes when many tasks are due: the call ends after `max_tasks` tasks, or
        with the task during which `max_seconds` of the machine's own clock have passed. The virtual clock then shows
        the time of the last task that ran, and `advance_to` with the same end continues in the same order. However slow
        the machine, a positive budget runs one due task, so that repeated calls make progress.
        """
        target = self._time + self._forwards(to_nanoseconds(seconds, "seconds"), seconds)
        return self._advance(target, max_tasks, max_seconds)

    def advance_to(
        self, time: float, *, max_tasks: int | None = None, max_seconds: float | timedelta | None = None
    ) -> int:
        """Advance the clock to `time`, in seconds on this timer's clock, as `advance` does."""
        target = to_nanoseconds(time, "time")
        self._forwards(target - self._time, time)
        return self._advance(target, max_tasks, max_seconds)

    def advance_to_next(self) -> int:
        """Advance to the next deadline and run the tasks due there; return the number that ran.

        Return 0 and leave the clock unchanged if no task has a finite deadline. Takes as long as `next_deadline`, plus
        the tasks.
        """
        target = self._earliest()
        return 0 if target >= NEVER else self._advance(max(target, self._time), None, None)

    def next_deadline(self) -> float | None:
        """Return the earliest deadline, in seconds, rounded up to a tick; None when nothing is pending.

        The result is exact, while `next_expiration` may return an earlier time, at which tasks only cascade. O(tasks
        that cascade before that deadline).
        """
        return to_seconds(self._earliest()) if len(self) else None

    def _earliest(self) -> int:
        """Return the earliest deadline in nanoseconds; NEVER if nothing is pending."""
        enter(self)
        try:
            found = self._wheel.earliest()
        finally:
            leave(self)
        return NEVER if found is None else found[0]

    def _forwards(self, step: int, given: object) -> int:
        if step < 0:
            raise ValueError(f"time does not go back: {given!r} is before the present, {to_seconds(self._time)} s")
        return step

    def _advance(self, target: int, max_tasks: int | None, max_seconds: float | timedelta | None) -> int:
        if target >= NEVER:
            raise OverflowError("a virtual clock ends at 146 years (2**62 ns): advance it less far")
        tasks = NEVER if max_tasks is None else whole_number(max_tasks, "max_tasks")
        if max_seconds is None:
            return self._run_until(target, tasks, NEVER)
        budget = to_nanoseconds(max_seconds, "max_seconds")
        return self._run_until(target, tasks, monotonic_ns() + budget) if budget > 0 else 0

    def _run_until(self, target: int, tasks: int, until: int) -> int:
        ran = 0
        while ran < tasks and (until >= _FOREVER or ran == 0 or monotonic_ns() < until):
            enter(self)
            try:
                upcoming = self._wheel._upcoming()
                if upcoming < 0 or upcoming > target:
                    self._reach(target)
                    break
                item = self._wheel._poll(target, _CASCADES)
                self._reach(self._wheel._now())  # while a task is due, the wheel's clock stops at its deadline
                self._wakeups += 1
            finally:
                leave(self)
            if item is not None:
                ran += 1
                self._run(item)
                item = None  # dropped here, not under the lock when the next one replaces it
        return ran

    def _reach(self, time: int) -> None:
        if time > self._time:
            self._time = time

    def __repr__(self) -> str:
        return f"<ManualTimer at {to_seconds(self._time):.9g}s, {len(self)} pending>"
