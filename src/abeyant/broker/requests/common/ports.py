"""Protocols of the objects that request handlers use: the broker, its coordinators, and the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from abeyant import Purgatory
from abeyant.broker.coordinator import ports
from abeyant.broker.coordinator.coordinator import Coordinator
from abeyant.broker.delayed.throttle import ThrottledChannels
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.log.directory import DataDirectory
from abeyant.broker.quotas.limits import ClientQuotas
from abeyant.broker.replica import ports as replica_ports
from abeyant.broker.replica.messages import Key
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.fetch_sessions import FetchSessions
from abeyant.broker.security.protocol import Security
from abeyant.broker.shares.partitions import SharePartitions
from abeyant.broker.shares.sessions import ShareSessions
from abeyant.broker.shares.state.shard import ShareStateShard
from abeyant.broker.telemetry.clients import TelemetryClients
from abeyant.broker.transactions.shard import TransactionShard


class Gate(Protocol):
    """A function that is called with each request before it is handled."""

    def __call__(self, call: Any, /) -> bool:
        """Return whether the gate takes over a `Call`, `PeerCall` or `ReplicaFetchCall`.

        If so, the gate has to call the request's `proceed`, `refuse` or `drop`, in the loop's thread, now or later.
        """


class Cluster(replica_ports.Cluster, Protocol):
    """The cluster of the broker that handles a request."""

    _gate: Gate | None

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Return all brokers by id, stopped ones included."""

    @property
    def directory(self) -> DataDirectory | None:
        """Return the data directory; None for logs in memory."""

    @property
    def security(self) -> Security:
        """Return the security settings of clients: TLS, SASL and users."""


class Broker(ports.Broker, Protocol):
    """The broker that handles a request."""

    host: str
    port: int
    partitions: dict[Key, Partition]
    by_id: dict[tuple[int, int], Partition]  # by the number of a topic id: its hash and comparison are quicker
    client_quotas: ClientQuotas
    fetch_sessions: FetchSessions
    telemetry: TelemetryClients
    throttled: ThrottledChannels
    elect_leader_purgatory: Purgatory[Any]
    inter_broker_purgatory: Purgatory[Any]
    group_coordinator: Coordinator[GroupShard]
    transaction_coordinator: Coordinator[TransactionShard]
    share_coordinator: Coordinator[ShareStateShard]

    @property
    def cluster(self) -> Cluster:
        """Return the broker's cluster."""

    @property
    def shares(self) -> SharePartitions:
        """Return the broker's share partitions."""

    @property
    def share_sessions(self) -> ShareSessions:
        """Return the share sessions of the broker's clients."""

    @property
    def advertised(self) -> tuple[str, int]:
        """Return the broker's host and port for clients."""

    @property
    def log_dir(self) -> str:
        """Return the broker's log directory, as shown to clients."""

    def handle(self, call: Any) -> None:
        """Handle a call. If that raises, log the exception and respond with UNKNOWN_SERVER_ERROR."""
