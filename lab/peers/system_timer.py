"""Our timer with a thread."""

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
        """A callback that waits holds up the timer's thread."""
        self._gate.clear()
        held = threading.Event()

        def stand() -> None:
            held.set()
            self._gate.wait()

        self.timer.call_later(0, stand)
        held.wait()

    def release(self) -> None:
        """Let the callback go on."""
        self._gate.set()

    def wait(self) -> None:
        """Sleep: the timer's thread has all of the interpreter."""
        time.sleep(0.02)

    def close(self) -> None:
        """Close the timer."""
        self._gate.set()
        super().close()
