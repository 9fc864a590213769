"""The leader's record of one follower of a partition."""

from __future__ import annotations

from typing import Any, Protocol

from abeyant.broker.log import Batch

UNKNOWN = -1  # an offset before the follower's first fetch


class FollowerSession(Protocol):
    """A follower's fetch session. `Partition` is Any, since it is above this module."""

    fetched_at: float
    """The time at which the follower's last fetch arrived, in seconds on the broker's clock."""
    ready: dict[Any, None]
    """The partitions with something new for the follower."""

    def leave(self, partition: Any, /) -> None:
        """Remove a partition from the session."""

    def deliver(self, partition: Any, remote: Any, batch: Batch, now: float, now_ms: int, /) -> Any:
        """Append `batch` to the follower's replica and return the replica; None if the follower has to fetch it."""


class Remote:
    """The leader's record of a follower: its log end offset, and the time at which it was last caught up.

    A follower's fetches do not list a partition in which the follower is caught up. For such a partition every fetch of
    the session counts as caught up; when the leader's log grows, `record_lag` stores the time of the last fetch.
    """

    def __init__(self, broker: int, caught_up_at: float) -> None:
        """Start with an unknown log end offset. `caught_up_at` is in seconds on the broker's clock."""
        self.broker = broker
        self.end = UNKNOWN
        self.start = UNKNOWN
        self.session: FollowerSession | None = None
        self.caught_up_at = caught_up_at
        self.sent_high_watermark = UNKNOWN
        self.sent_start = UNKNOWN
        self._fetched_at = caught_up_at
        self._leader_end = 1 << 63  # the leader's end at that fetch

    def record_fetch(self, offset: int, start: int, leader_end: int, now: float) -> None:
        """Record a fetch from `offset`: the follower has all before it. Kafka: `updateFetchStateOrThrow`."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self._leader_end and self._fetched_at > self.caught_up_at:
            self.caught_up_at = self._fetched_at
        self.end = offset
        self.start = start
        self._fetched_at = now
        self._leader_end = leader_end

    def record_lag(self, end_before: int) -> None:
        """Record that the leader's log has grown beyond `end_before`, this follower's log end offset."""
        if self.session is not None and self.session.fetched_at > self.caught_up_at:
            self.caught_up_at = self._fetched_at = self.session.fetched_at
            self._leader_end = end_before

    def last_caught_up(self, leader_end: int) -> float:
        """Return the time at which the follower last had the leader's whole log, in seconds on the broker's clock."""
        if self.end >= leader_end and self.session is not None:
            return max(self.caught_up_at, self.session.fetched_at)
        return self.caught_up_at
