"""The base of a broker's delayed operations, and their rows in `Cluster.waiting`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from abeyant import DelayedOperation


class Waiting(NamedTuple):
    """A pending request, as `Cluster.waiting` returns it."""

    broker: int
    kind: str
    """The name of the purgatory; or of the API, as "ReplicaFetch", if a fault or a paused broker holds the request.

    Purgatories are "Produce", "Fetch", "DeleteRecords", "ElectLeader", "Rebalance", "Heartbeat", "ShareFetch",
    "ShareLock" (records that a member of a share group has acquired), "InterBroker" (a broker's request to another
    broker), "Throttle" (a connection from which no request is read, or a replica that fetches nothing).
    """
    keys: tuple[tuple[str, int | str], ...]
    """The keys that the request waits on: (topic, partition), or (group, member) for rebalances and sessions.

    A share lock has both, and ("offsets", "first-last") for its offsets. A throttled connection has (API, quota).
    """
    client_id: str
    """The client id of the request; a follower's is "broker-2-fetcher-0", as in Kafka."""
    since: float
    """The time at which the wait started, in seconds on the cluster's clock."""
    deadline: float
    """The time at which the wait expires, in seconds on the cluster's clock; infinity for never."""
    held_by: str = ""
    """The reason why the request is held: "delay" (a fault), "throttle" (a quota or a fault) or "pause" (a paused
    broker). "" if the request is not held."""

    @property
    def client(self) -> str:
        """Former name of `client_id`."""
        return self.client_id


class BrokerOperation(DelayedOperation):
    """A delayed operation in one of a broker's purgatories."""

    __slots__ = ("client_id", "since")

    kind: str  # the purgatory's name, set by each subclass

    def __init__(self, timeout: float, client_id: str, since: float) -> None:
        """Expire after `timeout` seconds. `since` is the time of the start, in seconds on the cluster's clock."""
        super().__init__(timeout)
        self.client_id = client_id
        self.since = since

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topics and partitions, or groups and members, that the operation waits for."""
        raise NotImplementedError

    def describe(self, broker: int) -> Waiting:
        """Return the operation's row in `Cluster.waiting`."""
        return Waiting(broker, self.kind, tuple(self.keys()), self.client_id, self.since, self.since + self.timeout)


class PendingPartition(Protocol):
    """One partition of a pending request."""

    partition: Any
    """The `Partition`; typed Any, since this module must not import `replica.partition`."""
    pending: bool
    """Whether the partition has no result yet."""

    def poll(self) -> bool:
        """Update the result. Return whether the partition is still pending."""


class PartitionsOperation(BrokerOperation):
    """An operation that completes when none of its partitions is pending. Its keys are its pending partitions."""

    __slots__ = ("_answer", "_waiting")

    def __init__(
        self,
        timeout: float,
        waiting: Sequence[PendingPartition],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait until each partition in `waiting` has a result, at most `timeout` seconds. Then call `answer` once."""
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
        """Call `then` once, after `seconds`. `key` is (API, quota) or (topic, partition), for `Cluster.waiting`."""
        super().__init__(seconds, client_id, since)
        self._keys = (key,)
        self.then = then

    def keys(self) -> tuple[tuple[str, int | str], ...]:
        """Return the key to show in `Cluster.waiting`."""
        return self._keys

    def describe(self, broker: int) -> Waiting:
        """Return the operation's row in `Cluster.waiting`, with `held_by` "throttle"."""
        return super().describe(broker)._replace(held_by="throttle")

    def try_complete(self) -> bool:
        """Return False: the deadline, the end of the connection or a change of settings completes the operation."""
        return False

    def on_complete(self) -> None:
        """Call `then`, which unmutes the channel or resumes the replica."""
        self.then()


def follower_name(broker: int) -> str:
    """Return the client id of a follower's fetcher, as in Kafka."""
    return f"broker-{broker}-fetcher-0"
