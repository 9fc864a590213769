"""The standard library's `sched`."""

from __future__ import annotations

import sched
import time
from collections.abc import Callable, Sequence
from typing import Any

from lab.peers.rival import Handle, Rival, noop


class SchedRival(Rival):
    """The rival that measures `sched.scheduler`, polled. Its `cancel` rebuilds the heap, so the sizes are small."""

    largest = 1_000
    forgets = False

    def __init__(self) -> None:
        self.scheduler = sched.scheduler(time.monotonic, time.sleep)

    def pair(self, delays: Sequence[float]) -> None:
        """As `Rival.pair`."""
        enter, cancel = self.scheduler.enter, self.scheduler.cancel
        for delay in delays:
            cancel(enter(delay, 1, noop))

    def start_all(self, delays: Sequence[float]) -> list[Handle]:
        """As `Rival.start_all`."""
        enter = self.scheduler.enter
        return [enter(delay, 1, noop) for delay in delays]

    def start_forgotten(self, delays: Sequence[float]) -> None:
        """As `Rival.start_forgotten`."""
        enter = self.scheduler.enter
        for delay in delays:
            enter(delay, 1, noop)

    def stop_all(self, handles: Sequence[Handle]) -> None:
        """As `Rival.stop_all`."""
        cancel = self.scheduler.cancel
        for handle in handles:
            cancel(handle)

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: float) -> None:
        """As `Rival.refresh_all`."""
        enter, cancel = self.scheduler.enter, self.scheduler.cancel
        for index in order:
            cancel(handles[index])
            handles[index] = enter(delay, 1, noop)

    def ask_next(self, times: Sequence[int]) -> None:
        """Ask for the next expiration with a non-blocking `run`, which returns it."""
        run = self.scheduler.run
        for _ in times:
            run(False)

    def start(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """As `Rival.start`."""
        self.scheduler.enter(seconds, 1, callback, args)

    def turn(self) -> None:
        """Run the callbacks that are due."""
        self.scheduler.run(False)
