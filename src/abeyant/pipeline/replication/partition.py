"""Model a partition as its leader sees it: the followers' offsets, the replicas in sync, and the high watermark.

The high watermark is the least log end offset of the replicas in sync (Kafka, `Partition.maybeIncrementLeaderHW`): all
of them have the records before it. A replica that joins counts from the leader's request to the controller on. A
replica that leaves counts until the controller has responded. With fewer replicas in sync than `min.insync.replicas`,
the high watermark does not move (KIP-966).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Moved", "Partition"]

_NOTHING = -1  # below every log end offset
_UNKNOWN = -1  # a leader's id


class Moved(NamedTuple):
    """A move of the high watermark on one leader: it has gone up to `progress`."""

    instance: str
    progress: int
    cause: str


class Partition:
    """Model of a partition that computes its high watermarks from facts in order of time.

    Each instance that leads the partition has its own view. Memory: an integer for each replica and instance.
    """

    def __init__(self, followers: Iterable[int], least: int) -> None:
        """Assume that `followers` are in sync until `changed` says otherwise; `least` is `min.insync.replicas`."""
        self._leader = _UNKNOWN
        self._in_sync = {_UNKNOWN, *followers}
        self._coming: set[int] = set()
        self._least = least
        self._controller_told = False
        self._followers: dict[str, dict[int, int]] = {}
        self._log_end: dict[str, int] = {}
        self._watermark: dict[str, int] = {}

    def fetched(self, instance: str, replica: int, offset: int) -> Iterator[Moved]:
        """Record that a follower has all records before this offset; yield the high watermark if it moves."""
        followers = self._followers.setdefault(instance, {})
        # The log's clock is coarse: fetches of one millisecond may come in the wrong order.
        followers[replica] = max(followers.get(replica, _NOTHING), offset)
        yield from self._moved(instance, "fetch")

    def appended(self, instance: str, end: int) -> Iterator[Moved]:
        """Record that the leader has all records before this offset; yield the high watermark if it moves."""
        self._followers.setdefault(instance, {})
        self._log_end[instance] = max(self._log_end.get(instance, _NOTHING), end)
        yield from self._moved(instance, "append")

    def asking(self, in_sync: Iterable[int]) -> None:
        """Record that the leader proposes these in-sync replicas to the controller."""
        self._coming = set(in_sync)

    def changed(self, leader: int, in_sync: Iterable[int], *, by_controller: bool) -> Iterator[Moved]:
        """Set the in-sync replicas; yield high watermarks that move. Ignore metadata once a controller has set them."""
        if self._controller_told and not by_controller:
            return
        self._controller_told = by_controller
        self._leader, self._in_sync, self._coming = leader, set(in_sync), set()
        for instance in self._followers:
            yield from self._moved(instance, "isr")

    def _moved(self, instance: str, cause: str) -> Iterator[Moved]:
        least = self._least_log_end(instance)
        if least > self._watermark.get(instance, _NOTHING):
            self._watermark[instance] = least
            yield Moved(instance, least, cause)

    def _least_log_end(self, instance: str) -> int:
        if len(self._in_sync) < self._least:
            return _NOTHING
        waited_for = (self._in_sync | self._coming) - {self._leader}
        followers = self._followers[instance]
        return min(
            (followers.get(replica, _NOTHING) for replica in waited_for), default=self._log_end.get(instance, _NOTHING)
        )
