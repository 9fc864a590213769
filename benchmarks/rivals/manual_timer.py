"""Our timer on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence

from abeyance import ManualTimer
from benchmarks.rivals.rival import Handle, Rival


class ManualTimerRival(Rival):
    """`abeyance.ManualTimer`, with the tick of the system timer. It runs inside its caller's `advance`."""

    stalls = False
    real_clock = False

    def __init__(self) -> None:
        self.timer = ManualTimer(tick=0.001)
        self.call = self.timer.call_later
        self._owed = 0.0

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: float) -> None:
        """As `Rival.refresh_all`: a task knows its delay."""
        for index in order:
            handles[index].refresh()

    def ask_next(self, times: Sequence[int]) -> None:
        """As `Rival.ask_next`."""
        next_expiration = self.timer.next_expiration
        for _ in times:
            next_expiration()

    def pass_time(self, seconds: float) -> None:
        """At the next turn."""
        self._owed += seconds

    def turn(self) -> None:
        """Let the time pass that is owed."""
        if self._owed:
            owed, self._owed = self._owed, 0.0
            self.timer.advance(owed)

    def close(self) -> None:
        """Close the timer."""
        self.timer.close()
