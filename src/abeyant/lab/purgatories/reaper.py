"""Who gives a reaped purgatory its turns: a thread on the machine's clock, or a virtual clock."""

from __future__ import annotations

import threading
import time

from abeyant.lab.purgatories.reaped import Reaped

POLL = 200_000_000  # ns: Kafka's reaper sleeps no longer, and looks then whether to purge


class VirtualClock:
    """Nanoseconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        """The time."""
        return self.now


class VirtualReaper:
    """Moves a virtual clock, taking every turn on the way at its own time."""

    def __init__(self, purgatory: Reaped, clock: VirtualClock, *, each_poll: bool) -> None:
        """Without `each_poll`, polls are left out before which nothing has come since the last one."""
        self._purgatory = purgatory
        self._clock = clock
        self._each_poll = each_poll
        self._polls = POLL

    def advance_to(self, now: int) -> None:
        """Let the clock reach `now` (nanoseconds)."""
        polled = False
        while True:
            upcoming = self._purgatory.next_expiration()
            if polled and not self._each_poll:
                ahead = now + 1 if upcoming is None else min(upcoming, now + 1)
                self._polls = max(self._polls, -(-ahead // POLL) * POLL)
            stop = self._polls if upcoming is None else min(upcoming, self._polls)
            if stop > now:
                break
            self._clock.now = max(self._clock.now, stop)
            self._purgatory.turn(self._clock.now)
            polled = stop == self._polls
            if polled:
                self._polls += POLL
        self._clock.now = max(self._clock.now, now)


class Reaper(threading.Thread):
    """The reaper as a thread: sleeps until the next deadline, at most 200 ms, and is woken for an earlier one."""

    def __init__(self, purgatory: Reaped) -> None:
        super().__init__(name="reaper", daemon=True)
        self._purgatory = purgatory
        self._alarm = threading.Event()
        self._ends = False

    def run(self) -> None:
        """Take turns until `stop`."""
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
        """End, and wait for it."""
        self._ends = True
        self._alarm.set()
        self.join()
