"""Limits of a broker's connections: in number, per address, per second. Kafka: `ConnectionQuotas`.

At `max.connections` a broker accepts none until one ends; beyond `max.connections.per.ip` a client is closed; above
`max.connection.creation.rate` a connection is delayed, and those behind it wait.
Brokers of a cluster need no connections to one another here, so clients' alone count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from abeyant.broker.wire.connection_rate import ConnectionRate

if TYPE_CHECKING:
    from abeyant.broker.wire.connection import Connection


class Limits(Protocol):
    """The limits in force now, for they may change while the broker runs."""

    def connections(self) -> int:
        """Return the limit of all connections of the listener."""

    def connections_per_second(self) -> int:
        """Return the limit of connections that are accepted per second."""

    def connections_of(self, address: str) -> int:
        """Return the limit of connections from one address."""


class ConnectionQuotas:
    """One broker's connections, counted from when they are accepted. Use from the loop's thread only."""

    __slots__ = ("_by_address", "_held", "_limits", "_rate")

    def __init__(self, limits: Limits, rate: ConnectionRate) -> None:
        """Begin with none."""
        self._limits = limits
        self._rate = rate
        self._held: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def full(self) -> bool:
        """Return whether no connection may be accepted. O(1)."""
        return len(self._held) >= self._limits.connections()

    def refusal(self, address: str) -> str:
        """Return why a client from this address is closed; "" where it is not. O(1)."""
        limit = self._limits.connections_of(address)
        if self._by_address[address] < limit:
            return ""
        return f"{address} has {limit} connections already, its limit by max.connections.per.ip"

    def delay(self, now: float) -> float:
        """Count a connection that came at `now`; return by how many seconds to delay it, and all behind it."""
        return self._rate.record(now, self._limits.connections_per_second())

    def enter(self, connection: Connection, address: str) -> None:
        """Count a connection, until `leave`."""
        self._held[connection] = address
        self._by_address[address] += 1

    def leave(self, connection: Connection) -> None:
        """Count a connection no more. A second call does nothing."""
        address = self._held.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
