"""A follower, as the leader of one partition sees it."""

from __future__ import annotations

from typing import Any, Protocol

UNKNOWN = -1  # an offset, until the follower has first fetched


class FollowerSession(Protocol):
    """The session in which a follower fetches. `Partition` stands as Any, since it is above this module."""

    fetched_at: float
    """When its last fetch came, in seconds on the broker's clock."""
    ready: set[Any]
    """The partitions that have something new for the follower."""

    def leave(self, partition: Any, /) -> None:
        """Forget a partition."""


class Remote:
    """A follower's log end offset, and when it was last caught up.

    A partition that is caught up is not listed in the follower's fetches: then the time of the session's last fetch
    counts, and `fell_behind` records it when the log grows.
    """

    def __init__(self, broker: int, caught_up_at: float) -> None:
        """`caught_up_at`: seconds on the broker's clock."""
        self.broker = broker
        self.end = UNKNOWN
        self.start = UNKNOWN
        self.session: FollowerSession | None = None
        self.caught_up_at = caught_up_at
        self.sent_high_watermark = UNKNOWN
        self.sent_start = UNKNOWN
        self._fetched_at = caught_up_at
        self._end_then = 1 << 63  # the leader's end at that fetch

    def fetched(self, offset: int, start: int, leader_end: int, now: float) -> None:
        """Record a fetch from `offset`: the follower has everything before. Kafka: `updateFetchStateOrThrow`."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self._end_then and self._fetched_at > self.caught_up_at:
            self.caught_up_at = self._fetched_at
        self.end = offset
        self.start = start
        self._fetched_at = now
        self._end_then = leader_end

    def fell_behind(self, end_before: int) -> None:
        """Record that the leader's log has grown beyond `end_before`, where this follower was."""
        if self.session is not None and self.session.fetched_at > self.caught_up_at:
            self.caught_up_at = self._fetched_at = self.session.fetched_at
            self._end_then = end_before

    def last_caught_up(self, leader_end: int) -> float:
        """Return when it was last at the end of the leader's log, in seconds on the broker's clock."""
        if self.end >= leader_end and self.session is not None:
            return max(self.caught_up_at, self.session.fetched_at)
        return self.caught_up_at
