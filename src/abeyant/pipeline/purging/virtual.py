"""Run a purgatory's reaper on a virtual clock."""

from __future__ import annotations

from abeyant.pipeline.purging.reaped import Reaped

POLL = 200_000_000  # ns: the longest sleep of Kafka's reaper, which then checks whether to purge


class VirtualClock:
    """A clock in nanoseconds that only `VirtualReaper` moves."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        """Return the present time."""
        return self.now


class VirtualReaper:
    """A purgatory's reaper on a virtual clock: it runs at each time at which Kafka's reaper thread would wake."""

    def __init__(self, purgatory: Reaped, clock: VirtualClock, *, each_poll: bool) -> None:
        """Take a purgatory and its clock. Unless `each_poll`, skip polls while nothing is added to the purgatory."""
        self._purgatory = purgatory
        self._clock = clock
        self._each_poll = each_poll
        self._polls = POLL

    def advance_to(self, now: int) -> None:
        """Advance the clock to `now` (nanoseconds), and run the reaper at each time before at which it would wake."""
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
