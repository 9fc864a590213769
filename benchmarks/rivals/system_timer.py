"""Our timer with a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from abeyance import SystemTimer
from benchmarks.rivals.rival import Handle, Rival


class SystemTimerRival(Rival):
    """`abeyance.SystemTimer`, used from the main thread."""

    def __init__(self) -> None:
        self.timer = SystemTimer("benchmark")
        self.call = self.timer.call_later
        self._gate = threading.Event()

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: float) -> None:
        """As `Rival.refresh_all`: a task knows its delay."""
        for index in order:
            handles[index].refresh()

    def ask_next(self, times: Sequence[int]) -> None:
        """As `Rival.ask_next`."""
        next_expiration = self.timer.next_expiration
        for _ in times:
            next_expiration()

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
        self.timer.close()
