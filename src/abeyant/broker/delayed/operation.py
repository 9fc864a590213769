"""The base of every operation that waits in a broker, and its row in `Cluster.waiting`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from abeyant import DelayedOperation


class Waiting(NamedTuple):
    """A request that waits, as `Cluster.waiting` returns it."""

    broker: int
    kind: str
    """The purgatory: "Produce", "Fetch", "DeleteRecords", "ElectLeader", "Rebalance", "Heartbeat", "InterBroker" (a
    broker's request to another). Of a request that is held: its API, "Metadata" for instance, or "ReplicaFetch"."""
    keys: tuple[tuple[str, int | str], ...]
    """What it waits for: topics and partitions; in a rebalance or a session, groups and members."""
    client: str
    """The client's id; followers are called "broker-2-fetcher-0", as Kafka's own."""
    since: float
    """When it began to wait, in seconds on the cluster's clock."""
    deadline: float
    """When it will expire, in seconds on the cluster's clock; infinity for never."""
    held_by: str = ""
    """Why the request is held: "delay", by a fault, or "pause", of its broker; else empty."""


class BrokerOperation(DelayedOperation):
    """A request that waits in one of a broker's purgatories."""

    __slots__ = ("client_id", "since")

    kind: str  # each subclass has its purgatory's

    def __init__(self, timeout: float, client_id: str, since: float) -> None:
        """`timeout` in seconds, `since` in seconds on the cluster's clock."""
        super().__init__(timeout)
        self.client_id = client_id
        self.since = since

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topics and partitions, or groups and members, that it waits for."""
        raise NotImplementedError

    def describe(self, broker: int) -> Waiting:
        """Return what `Cluster.waiting` lists."""
        return Waiting(broker, self.kind, tuple(self.keys()), self.client_id, self.since, self.since + self.timeout)


class PendingPartition(Protocol):
    """One partition of a request that waits."""

    partition: Any
    """A `Partition`, which is above this module."""
    pending: bool
    """Whether it has no result yet."""

    def poll(self) -> bool:
        """Update the result; return whether the partition is still pending."""


class PartitionsOperation(BrokerOperation):
    """Waits until none of its partitions is pending, keyed by them."""

    __slots__ = ("_answer", "_waiting")

    def __init__(
        self,
        timeout: float,
        waiting: Sequence[PendingPartition],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait for at most `timeout` seconds; `answer` is called once, when each of `waiting` has its result."""
        super().__init__(timeout, client_id, since)
        self._waiting = waiting
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions that are still pending."""
        return ((one.partition.topic, one.partition.index) for one in self._waiting if one.pending)

    def try_complete(self) -> bool:
        """Complete when none is pending."""
        pending = False
        for one in self._waiting:
            if one.poll():
                pending = True
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Answer; partitions that are still pending have timed out."""
        self._answer()


def follower_name(broker: int) -> str:
    """Return the client id of a follower's fetcher, as Kafka has it."""
    return f"broker-{broker}-fetcher-0"
