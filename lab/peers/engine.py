"""Our engine alone: the wheel with a clock and a loop, as in its drivers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from abeyant.engine import TimingWheel
from lab.peers.rival import Handle, Rival, noop

BUDGET = 1024  # tasks a turn

clock = time.monotonic_ns


class EngineRival(Rival):
    """The rival that measures `abeyant.engine.TimingWheel`. It has no lock and no handle object, only integers."""

    forgets = False

    def __init__(self) -> None:
        self.wheel = TimingWheel(1_000_000, 64, clock())

    def pair(self, delays: Sequence[int]) -> None:
        """As `Rival.pair`."""
        add, remove = self.wheel.add, self.wheel.remove
        for delay in delays:
            remove(add(clock() + delay, noop))

    def start_all(self, delays: Sequence[int]) -> list[Handle]:
        """As `Rival.start_all`."""
        add = self.wheel.add
        return [add(clock() + delay, noop) for delay in delays]

    def start_forgotten(self, delays: Sequence[int]) -> None:
        """As `Rival.start_forgotten`."""
        add = self.wheel.add
        for delay in delays:
            add(clock() + delay, noop)

    def stop_all(self, handles: Sequence[Handle]) -> None:
        """As `Rival.stop_all`."""
        remove = self.wheel.remove
        for handle in handles:
            remove(handle)

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: int) -> None:
        """As `Rival.refresh_all`."""
        refresh = self.wheel.refresh
        for index in order:
            refresh(handles[index], clock() + delay)

    def ask_next(self, times: Sequence[int]) -> None:
        """As `Rival.ask_next`."""
        next_expiration = self.wheel.next_expiration
        for _ in times:
            next_expiration()

    def units(self, seconds: list[float]) -> list[int]:
        """Return the delays in nanoseconds."""
        return [round(delay * 1e9) for delay in seconds]

    def start(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """As `Rival.start`; the wheel's items are callbacks."""
        item = (lambda: callback(*args)) if args else callback
        self.wheel.add(clock() + round(seconds * 1e9), item)

    def turn(self) -> None:
        """Run the callbacks that are due, up to the budget."""
        for callback in self.wheel.advance(clock(), BUDGET):
            callback()  # type: ignore[operator]
