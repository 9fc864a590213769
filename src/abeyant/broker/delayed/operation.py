"""The base of a broker's delayed operations, and their rows in `Cluster.waiting`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from abeyant import DelayedOperation


class Waiting(NamedTuple):
    """A pending request, as `Cluster.waiting` returns it."""

    broker: int
    kind: str
    """The purgatory; for a held request its API, for instance "Metadata" or "ReplicaFetch".

    Purgatories are "Produce", "Fetch", "DeleteRecords", "ElectLeader", "Rebalance", "Heartbeat", "ShareFetch",
    "ShareLock" (records that a member of a share group has), "InterBroker" (a broker's request to another), "Throttle"
    (a connection from which no request is read, or a replica that fetches nothing).
    """
    keys: tuple[tuple[str, int | str], ...]
    """The keys that it waits on: topics and partitions, or groups and members for rebalances and sessions.

    A share lock has both, and ("offsets", "first-last").
    """
    client_id: str
    """The client id of the request; a follower's is "broker-2-fetcher-0", as in Kafka."""
    since: float
    """The time at which it started to wait, in seconds on the cluster's clock."""
    deadline: float
    """The time at which it expires, in seconds on the cluster's clock; infinity for never."""
    held_by: str = ""
    """The reason why it is held: "delay" (a fault), "throttle" (a quota or a fault), "pause" (its broker); else ""."""

    @property
    def client(self) -> str:
        """Former name of `client_id`."""
        return self.client_id


class BrokerOperation(DelayedOperation):
    """A delayed operation in one of a broker's purgatories."""

    __slots__ = ("client_id", "since")

    kind: str  # the purgatory's name, set by each subclass

    def __init__(self, timeout: float, client_id: str, since: float) -> None:
        """Expire after `timeout` seconds. `since` is the start, in seconds on the cluster's clock."""
        super().__init__(timeout)
        self.client_id = client_id
        self.since = since

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topics and partitions, or groups and members, that it waits for."""
        raise NotImplementedError

    def describe(self, broker: int) -> Waiting:
        """Return the operation's row in `Cluster.waiting`."""
        return Waiting(broker, self.kind, tuple(self.keys()), self.client_id, self.since, self.since + self.timeout)


class PendingPartition(Protocol):
    """One partition of a pending request."""

    partition: Any
    """A `Partition`; typed Any, since this module must not import that one."""
    pending: bool
    """Whether it has no result yet."""

    def poll(self) -> bool:
        """Update the result. Return whether the partition is still pending."""


class PartitionsOperation(BrokerOperation):
    """Completes when none of its partitions is pending; keyed by them."""

    __slots__ = ("_answer", "_waiting")

    def __init__(
        self,
        timeout: float,
        waiting: Sequence[PendingPartition],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait at most `timeout` seconds for the results of `waiting`, then call `answer`, once."""
        super().__init__(timeout, client_id, since)
        self._waiting = waiting
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions that are still pending."""
        return ((one.partition.topic, one.partition.index) for one in self._waiting if one.pending)

    def try_complete(self) -> bool:
        """Complete when no partition is pending."""
        pending = False
        for one in self._waiting:
            if one.poll():
                pending = True
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Call `answer`. Partitions that are still pending have timed out."""
        self._answer()


class Throttled(BrokerOperation):
    """The wait of a throttled channel or replica, in its broker's Throttle purgatory."""

    __slots__ = ("_keys", "then")

    kind = "Throttle"

    def __init__(
        self, seconds: float, key: tuple[str, int | str], client_id: str, since: float, then: Callable[[], object]
    ) -> None:
        """Call `then` once, after `seconds`. `key` is shown: the API and the quota, or the partition."""
        super().__init__(seconds, client_id, since)
        self._keys = (key,)
        self.then = then

    def keys(self) -> tuple[tuple[str, int | str], ...]:
        """Return the throttled request's key."""
        return self._keys

    def describe(self, broker: int) -> Waiting:
        """Return the throttled request's row in `Cluster.waiting`."""
        return super().describe(broker)._replace(held_by="throttle")

    def try_complete(self) -> bool:
        """Return False: its deadline, the end of the connection or a change of the settings completes it."""
        return False

    def on_complete(self) -> None:
        """Call `then`, which unmutes the channel or resumes the replica."""
        self.then()


def follower_name(broker: int) -> str:
    """Return the client id of a follower's fetcher, as in Kafka."""
    return f"broker-{broker}-fetcher-0"
