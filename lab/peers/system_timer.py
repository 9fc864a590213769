"""The rivals that measure our timer with a thread, `abeyant.SystemTimer`."""

from __future__ import annotations

import threading
import time

from abeyant import SystemTimer
from lab.peers.our_timer import OurTimerRival


class SystemTimerRival(OurTimerRival):
    """`abeyant.SystemTimer`, used from the main thread."""

    def __init__(self) -> None:
        super().__init__(SystemTimer("benchmark"))
        self._gate = threading.Event()

    def hold(self) -> None:
        """Block the timer's thread in a callback."""
        self._gate.clear()
        blocked = threading.Event()

        def block() -> None:
            blocked.set()
            self._gate.wait()

        self.timer.call_later(0, block)
        blocked.wait()

    def release(self) -> None:
        """Unblock the timer's thread."""
        self._gate.set()

    def wait(self) -> None:
        """Sleep, so that the timer's thread has the interpreter to itself."""
        time.sleep(0.02)

    def close(self) -> None:
        """Close the timer."""
        self._gate.set()
        super().close()


class MeasuredTimerRival(SystemTimerRival):
    """`SystemTimer` while it measures the lateness and the callback time of one callback in sixteen."""

    def __init__(self) -> None:
        super().__init__()
        assert isinstance(self.timer, SystemTimer)
        self.timer.measure()


class AllMeasuredTimerRival(SystemTimerRival):
    """`SystemTimer` while it measures the lateness and the time of every callback."""

    def __init__(self) -> None:
        super().__init__()
        assert isinstance(self.timer, SystemTimer)
        self.timer.measure(every=1)
