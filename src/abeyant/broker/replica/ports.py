"""Protocols of the broker and the cluster that a replica uses.

`Partition` is typed Any, since this module must not import it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from abeyant import Purgatory
from abeyant.broker.clock import Clock
from abeyant.broker.controller import Controller
from abeyant.broker.network import Network, Receiver
from abeyant.broker.partition_state import PartitionState
from abeyant.broker.replica.messages import Key, ReplicaFetch, ReplicaResponse
from abeyant.broker.settings import Settings
from abeyant.purgatory.ports import Stoppable


class Timer(Protocol):
    """A broker's timer."""

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Stoppable:
        """Call `callback(*args)` after `delay` seconds. If the broker is paused at that time, wait until it resumes."""


class Fetchers(Protocol):
    """The follower side of a broker: see `fetcher.Fetchers`."""

    def waiting_replica(self, leader: int, number: int, key: Key, /) -> Any:
        """Return the replica of `key` if its fetcher only waits for a response in session `number`; else None."""

    def follow(self, partition: Any, /) -> None:
        """Start fetching a partition from its leader."""

    def leave(self, partition: Any, /) -> None:
        """Stop fetching a partition."""

    def receive(self, response: ReplicaResponse) -> None:
        """Append the records in a leader's response, and fetch again."""

    def failed(self, leader: int, number: int) -> None:
        """Start a new fetch session after the backoff, because the fetch of session `number` was lost."""


class Throttle(Protocol):
    """One side of the replication throttles: see `throttle.ReplicationThrottle`."""

    def record(self, size: int, /) -> None:
        """Count bytes of a throttled replica."""

    def excess(self) -> float:
        """Return the seconds for which to hold throttled replicas back; 0.0 if the rate is not exceeded."""

    def hold(self, partition: Key, follower: str, seconds: float, then: Callable[[], object], /) -> None:
        """Call `then` once, after `seconds` or when the settings change."""


class Observer(Protocol):
    """The request log. Brokers are typed Any, since the log reads more attributes than `Broker` has."""

    def log_replica_fetch(self, broker: Any, fetch: ReplicaFetch, answer: ReplicaResponse, since: float) -> None:
        """Log a follower's fetch."""

    def log_isr_change(self, broker: Any, before: PartitionState, after: PartitionState) -> None:
        """Log a change of the in-sync set."""

    def log_response(self, call: Any, response: Any) -> None:
        """Log a client's request; `response` is None if no response is sent."""


class Cluster(Protocol):
    """The cluster of a broker."""

    controller: Controller
    network: Network
    settings: Settings

    @property
    def clock(self) -> Clock:
        """Return the cluster's clock."""

    @property
    def _gate(self) -> object:
        """Return the function that delays, refuses or drops calls for faults; None without faults."""

    @property
    def _observer(self) -> Observer | None:
        """Return the request log; None without one."""

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Return all brokers by id, stopped ones included."""


class Broker(Receiver, Protocol):
    """The broker of a replica. Times are in seconds."""

    id: int
    paused: bool
    stopped: bool
    started_ms: int  # since 1970
    timer: Timer
    partitions: dict[Key, Any]
    answered: defaultdict[str, int]  # requests by API
    fetch_purgatory: Purgatory[Any]
    produce_purgatory: Purgatory[Any]
    delete_records_purgatory: Purgatory[Any]
    throttle_purgatory: Purgatory[Any]
    lag_max: float
    replica_fetch_wait: float
    replica_fetch_backoff: float
    replica_fetch_bytes: int
    replica_partition_bytes: int

    @property
    def cluster(self) -> Cluster:
        """Return the broker's cluster."""

    @property
    def leader_throttle(self) -> Throttle:
        """Return the throttle of the records that the broker sends as leader."""

    @property
    def follower_throttle(self) -> Throttle:
        """Return the throttle of the records that the broker fetches as follower."""

    @property
    def fetchers(self) -> Fetchers:
        """Return the broker's fetch loops."""

    def now(self) -> float:
        """Return the time on the cluster's clock."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""

    def ask_leader(self, leader: int, fetch: ReplicaFetch) -> None:
        """Send a fetch to the leader's broker."""

    def take_fetch(self, fetch: ReplicaFetch) -> None:
        """Receive a follower's fetch. Faults may delay or drop it."""

    def handle_fetch(self, fetch: ReplicaFetch) -> None:
        """Handle a follower's fetch."""

    def answer_follower(self, follower: int, answer: ReplicaResponse) -> None:
        """Send the response to a follower's fetch."""
