"""The broker's one clock (K8): every time in it is read here, and all that waits rides this timer.

`Clock` goes with the event loop, a virtual one too. `MachineClock` also knows of a machine that slept. `HeldClock`
stands still until it is told to go on.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from abeyance.aio.timer import Timer
from abeyance.errors import AbeyanceError
from abeyance.timer import ManualTimer
from abeyance.timer import Timer as AnyTimer

_SLEPT = 1.0  # seconds: what is less, or goes back, is not followed, so that times and time-outs agree


class Clock:
    """The loop's clock: seconds since some moment for what waits, milliseconds since 1970 for what is written down."""

    held = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.timer: AnyTimer = self._make_timer(loop)
        self.now: Callable[[], float] = self.timer.time  # seconds, monotonic
        # Kept, so that a record's time and a time-out do not disagree, also where the machine's clock is set anew.
        self._epoch = time.time() - self.timer.time()

    def _make_timer(self, loop: asyncio.AbstractEventLoop) -> AnyTimer:
        return Timer(loop)

    def now_ms(self) -> int:
        """Milliseconds since 1970, which never go back either."""
        return int((self._epoch + self.timer.time()) * 1000)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises AbeyanceError: only a held clock waits to be told."""
        raise AbeyanceError('only a held clock can be advanced: make the Cluster with clock="held"')

    def close(self) -> None:
        """Run nothing any more."""
        self.timer.close()


class MachineClock(Clock):
    """The clock of a loop that goes by the machine's, as a cluster's own loop does.

    A loop's clock stands still while the machine sleeps, and does not know that its date was set forward. Without
    those hours every later record of a client would be too far in the future (`message.timestamp.after.max.ms`).
    """

    def now_ms(self) -> int:
        """Milliseconds since 1970. They go on with the machine's date where that is ahead, and never go back."""
        ahead = time.time() - (self._epoch + self.timer.time())
        if ahead > _SLEPT:
            self._epoch += ahead
        return super().now_ms()


class HeldClock(Clock):
    """Time that stands still until `advance`."""

    held = True

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_loop: Callable[[Callable[[], None]], None], settle: Callable[[], None]
    ) -> None:
        """`on_loop` has something done in the loop's thread, `settle` has what brokers tell one another delivered."""
        super().__init__(loop)
        self._on_loop = on_loop
        self._settle = settle

    def _make_timer(self, loop: asyncio.AbstractEventLoop) -> ManualTimer:
        def report(error: BaseException, callback: Callable[..., object]) -> None:
            loop.call_exception_handler({"message": f"Exception in callback {callback!r}", "exception": error})

        self._manual = ManualTimer(on_error=report)
        return self._manual

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass: what comes due is done in order, each at its own time. From any thread.

        What brokers tell one another takes no time. Clients live in real time: see `Cluster.until_waiting`. Raises
        ValueError for less than 0.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds must be 0 or more: time does not go back; not {seconds!r}")
        self._on_loop(lambda: self._advance(seconds))

    def _advance(self, seconds: float) -> None:
        settle = self._settle
        target = self._manual.time() + seconds
        settle()
        while (upcoming := self._manual.next_expiration()) is not None and upcoming <= target:
            if not self._manual.advance_to(max(upcoming, self._manual.time())):
                # a bucket that only cascaded; or the nearest float is a nanosecond early
                self._manual.advance_to(min(target, max(math.nextafter(upcoming, math.inf), self._manual.time())))
                if self._manual.next_expiration() == upcoming:
                    break
            settle()
        self._manual.advance_to(max(target, self._manual.time()))
        settle()
