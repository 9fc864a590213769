"""The cluster's only clock and timer (law K8).

`Clock` follows the event loop's time, which may be virtual. `MachineClock` also counts the time that the machine slept.
`HeldClock` stands still until `advance`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from abeyant.aio.timer import Timer
from abeyant.errors import AbeyantError
from abeyant.timer import ManualTimer
from abeyant.timer import Timer as AnyTimer
from abeyant.timer.units import as_float

_STEP = 0.05  # seconds: how often a held clock that runs is advanced
_SLEPT = 1.0  # seconds: less is the time between two readings

# A clock that runs while the machine sleeps, and the event loops' clock, which does not.
_CLOCKS: tuple[int, int] | None = None
if hasattr(time, "CLOCK_BOOTTIME"):  # Linux
    _CLOCKS = time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC
elif hasattr(time, "CLOCK_UPTIME_RAW"):  # macOS
    _CLOCKS = time.CLOCK_MONOTONIC, time.CLOCK_UPTIME_RAW


class Clock:
    """The clock of a cluster: monotonic seconds for deadlines, milliseconds since 1970 for timestamps.

    With `Cluster(clock="held")` the clock stands still until `advance`, `advance_to_next` or `run` moves it. A
    `ManualTimer` does the same for timers, a `VirtualClock` for an asyncio loop.
    """

    held = False
    """Whether the clock is held: time passes only by `advance`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Not for users: get the clock from `Cluster.clock`."""
        self.timer: AnyTimer = self._make_timer(loop)
        self.now: Callable[[], float] = self.timer.time
        """A function that returns the time in monotonic seconds."""
        # Constant, so that timestamps and time-outs agree even if the machine's clock is set.
        self._epoch = time.time() - self.timer.time()

    def _make_timer(self, loop: asyncio.AbstractEventLoop) -> AnyTimer:
        return Timer(loop)

    def now_ms(self) -> int:
        """Return milliseconds since 1970, which never go back."""
        return int((self._epoch + self.timer.time()) * 1000)

    def advance(self, seconds: float) -> None:
        """Advance a held clock by `seconds`, and run timers that come due. Raises AbeyantError if it is not held."""
        raise AbeyantError(
            'only a held clock can be advanced: create the Cluster with clock="held" (abeyant broker --clock held)'
        )

    def advance_to_next(self) -> float | None:
        """Advance a held clock to the next deadline; return the seconds that passed, None if nothing is pending.

        Raises AbeyantError if the clock is not held.
        """
        raise AbeyantError(
            'only a held clock can be advanced: create the Cluster with clock="held" (abeyant broker --clock held)'
        )

    def run(self) -> None:
        """Let a held clock follow real time until `hold`. Raises AbeyantError if the clock is not held."""
        raise AbeyantError(
            'run and hold need a held clock: create the Cluster with clock="held" (abeyant broker --clock held)'
        )

    hold = run

    @property
    def runs(self) -> bool:
        """Return whether time passes without `advance`. This is False only for a held clock that does not `run`."""
        return True

    def interrupt(self) -> None:
        """Not for users. Stop an `advance` in progress, because the cluster closes. Call from any thread."""

    def close(self) -> None:
        """Not for users. Cancel all timers."""
        self.timer.close()


def until_scan(started_ms: int, interval_ms: int, due_ms: int, now_ms: int) -> float:
    """Return the seconds until the first scan after `due_ms`, if scans run every `interval_ms` from `started_ms` on.

    Kafka does much of its housekeeping by scanning everything at intervals. Here a timer runs only when something is
    due (law K7), at the time of Kafka's next scan. The first scan is one interval after the start. Never returns 0.
    """
    after = max(due_ms, now_ms, started_ms) - started_ms
    return (started_ms + (after // interval_ms + 1) * interval_ms - now_ms) / 1000


class MachineClock(Clock):
    """The clock of a cluster's own loop, in real time.

    An event loop's clock stands still while the machine sleeps. So this clock adds the time slept; otherwise later
    records of clients would be too far in the future (`message.timestamp.after.max.ms`). The time slept is read by
    functions that tests do not patch.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._slept = machine_slept()

    def now_ms(self) -> int:
        """Return milliseconds since 1970, which never go back and include the time that the machine slept."""
        slept = machine_slept()
        if slept - self._slept > _SLEPT:
            self._epoch += slept - self._slept
            self._slept = slept
        return int((self._epoch + self.now()) * 1000)


def machine_slept() -> float:
    """Return the seconds that the machine has slept, plus a constant; 0 if the system has no clocks that show sleep."""
    return 0.0 if _CLOCKS is None else time.clock_gettime(_CLOCKS[0]) - time.clock_gettime(_CLOCKS[1])


class HeldClock(Clock):
    """A held clock: time passes only by `advance`."""

    held = True

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_loop: Callable[[Callable[[], Any]], Any], settle: Callable[[], None]
    ) -> None:
        """Create the clock. `on_loop` calls a function in the loop's thread; `settle` delivers brokers' messages."""
        super().__init__(loop)
        self._on_loop = on_loop
        self._settle = settle
        self._loop = loop
        self._running: asyncio.TimerHandle | None = None
        self._interrupted = False

    def _make_timer(self, loop: asyncio.AbstractEventLoop) -> ManualTimer:
        def report(error: BaseException, callback: Callable[..., object]) -> None:
            loop.call_exception_handler({"message": f"Exception in callback {callback!r}", "exception": error})

        self._manual = ManualTimer(on_error=report)
        return self._manual

    def advance(self, seconds: float | timedelta) -> None:
        """Advance by `seconds`, and run the timers that come due, in order, each at its deadline. Thread-safe.

        Messages between brokers take no time. Clients run in real time: see `Cluster.until_waiting`. Raises TypeError
        if `seconds` is not a number or a timedelta, ValueError if it is negative or not finite, AbeyantError if the
        cluster is closed meanwhile.
        """
        length = as_float(seconds, "seconds")
        if not 0 <= length < math.inf:
            raise ValueError(f"seconds must be finite and not negative (time does not go back), not {seconds!r}")
        if not self._on_loop(lambda: self._advance(length)):
            raise AbeyantError(f"the cluster was closed before its clock was advanced by all of {length:g} s")

    def advance_to_next(self) -> float | None:
        """Advance to the next deadline. Return the seconds that passed, None if nothing is pending. Thread-safe.

        (`ManualTimer.advance_to_next` returns how many tasks ran; `VirtualClock.advance_to_next` has to be awaited.)
        """
        passed: float | None = self._on_loop(self._advance_to_next)
        return passed

    @property
    def runs(self) -> bool:
        """Return whether the clock follows real time, as it does from `run` until `hold`."""
        return self._running is not None

    def run(self) -> None:
        """Follow real time from now on, in steps of 50 ms, until `hold`. Thread-safe."""
        self._on_loop(lambda: None if self.runs else self._step_later())

    def hold(self) -> None:
        """Stop following real time: time passes only by `advance` again. Thread-safe."""
        self._on_loop(self._hold)

    def interrupt(self) -> None:
        """Not for users. Stop an `advance` in progress."""
        self._interrupted = True

    def close(self) -> None:
        """Cancel all timers."""
        self._hold()
        super().close()

    def _hold(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    def _step_later(self) -> None:
        self._running = self._loop.call_later(_STEP, self._step, self._loop.time())

    def _step(self, since: float) -> None:
        passed = self._loop.time() - since
        self._step_later()
        self._advance(passed)

    def _advance_to_next(self) -> float | None:
        self._settle()
        began, deadline = self._manual.time(), self._manual.next_deadline()
        if deadline is None or deadline == math.inf:
            return None
        self._manual.advance_to_next()
        self._settle()
        return self._manual.time() - began

    def _advance(self, seconds: float) -> bool:
        """Advance by `seconds`, and run the timers that come due. Return False if `interrupt` stopped the advance."""
        target = self._manual.time() + seconds
        self._settle()
        while (deadline := self._manual.next_deadline()) is not None and deadline <= target:
            if self._interrupted:
                return False
            self._manual.advance_to_next()
            self._settle()
        self._manual.advance_to(max(target, self._manual.time()))
        self._settle()
        return True
