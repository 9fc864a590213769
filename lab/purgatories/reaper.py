"""Run a purgatory's reaper in a thread, on the machine's clock."""

from __future__ import annotations

import threading
import time

from abeyant.pipeline.purging.reaped import Reaped
from abeyant.pipeline.purging.virtual import POLL


class Reaper(threading.Thread):
    """The reaper's thread: it sleeps until the next deadline, at most 200 ms; an earlier deadline wakes it."""

    def __init__(self, purgatory: Reaped) -> None:
        super().__init__(name="reaper", daemon=True)
        self._purgatory = purgatory
        self._alarm = threading.Event()
        self._ends = False

    def run(self) -> None:
        """Call the purgatory's `turn` again and again until `stop` is called."""
        while not self._ends:
            self._alarm.clear()
            now = time.monotonic_ns()
            self._purgatory.turn(now)
            upcoming = self._purgatory.next_expiration()
            until = now + POLL if upcoming is None else min(upcoming, now + POLL)
            if until <= time.monotonic_ns():
                continue
            self._purgatory.sleeping(until, self._alarm.set)
            # One that came in since the look above, and will not ring any more, is seen here.
            upcoming = self._purgatory.next_expiration()
            if upcoming is None or upcoming >= until:
                self._alarm.wait((until - time.monotonic_ns()) / 1e9)
            self._purgatory.sleeping(0, None)

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        self._ends = True
        self._alarm.set()
        self.join()
