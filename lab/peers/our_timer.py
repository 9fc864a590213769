"""Base of the rivals that measure our timers."""

from __future__ import annotations

from collections.abc import Sequence

from abeyant import Timer
from lab.peers.rival import Handle, Rival


class OurTimerRival(Rival):
    """Base class of the rivals that measure an `abeyant.Timer`."""

    def __init__(self, timer: Timer) -> None:
        self.timer = timer
        self.call = timer.call_later

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: float) -> None:
        """Restart these timers' delay with `refresh`, which needs no delay: a task knows its own."""
        for index in order:
            handles[index].refresh()

    def ask_next(self, times: Sequence[int]) -> None:
        """As `Rival.ask_next`."""
        next_expiration = self.timer.next_expiration
        for _ in times:
            next_expiration()

    def close(self) -> None:
        """Close the timer."""
        self.timer.close()
