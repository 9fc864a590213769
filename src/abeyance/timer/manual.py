"""A timer on a virtual clock: time passes when it is told to."""

from __future__ import annotations

from datetime import timedelta

from abeyance.timer.base import ErrorHandler, Timer
from abeyance.timer.units import NEVER, to_nanoseconds, to_seconds


class ManualTimer(Timer):
    """Runs what is due on the thread that calls `advance`, in order, each at its own time.

    For tests and simulations. The tick is a nanosecond by default, so that nothing is rounded; give the tick of
    the timer that it stands for to see that timer's rounding. Callbacks may start, cancel and refresh tasks, and
    advance the clock themselves.
    """

    __slots__ = ("_time",)

    def __init__(
        self,
        *,
        tick: float | timedelta = 1e-9,
        wheel_size: int = 64,
        start: float = 0.0,
        on_error: ErrorHandler | None = None,
    ) -> None:
        """`tick` and `start` in seconds; `on_error(error, callback)` gets what callbacks raise, else the log."""
        self._time = to_nanoseconds(start, "start")
        if not 0 <= self._time < NEVER:
            raise ValueError(f"start must be from 0 to 126 years, not {start!r} seconds")
        super().__init__(tick, wheel_size, self._time, on_error)

    def _now(self) -> int:
        return self._time

    def advance(self, seconds: float | timedelta) -> int:
        """Let `seconds` pass, running what comes due on the way; return how many tasks ran.

        During a callback the clock shows the time at which that task came due, so what a callback starts runs in
        the same call if its deadline is reached. Raises ValueError when negative: time does not go back (T7).
        """
        return self._advance(self._time + self._forwards(to_nanoseconds(seconds, "seconds"), seconds))

    def advance_to(self, time: float) -> int:
        """Like `advance`, up to `time` in seconds on this timer's clock."""
        target = to_nanoseconds(time, "time")
        self._forwards(target - self._time, time)
        return self._advance(target)

    def _forwards(self, step: int, given: object) -> int:
        if step < 0:
            raise ValueError(f"time does not go back: {given!r} is before {to_seconds(self._time)} s")
        return step

    def _advance(self, target: int) -> int:
        if target >= NEVER:
            raise OverflowError("a virtual clock ends at 146 years (2**62 ns)")
        ran = 0
        while True:
            self._enter()
            try:
                upcoming = self._wheel.next_expiration()
                if upcoming is None or upcoming > target:
                    self._time = max(self._time, target)
                    return ran
                self._time = max(self._time, upcoming)
                item = self._wheel.poll(self._time)
                self._wakeups += 1
            finally:
                self._leave()
            if item is not None:
                ran += 1
                self._run(item)
                item = None  # let go of here, not under the lock when the next one takes its place

    def __repr__(self) -> str:
        return f"<ManualTimer at {to_seconds(self._time):.9g}s, {len(self)} pending>"
