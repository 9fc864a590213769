"""Give a purgatory with a reaper its turns on a virtual clock."""

from __future__ import annotations

from abeyant.pipeline.purging.reaped import Reaped

POLL = 200_000_000  # ns: Kafka's reaper sleeps no longer, and looks then whether to purge


class VirtualClock:
    """Nanoseconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        """Return the present time."""
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
