"""Limits of a broker's connections: in total, per address, per second. Kafka: `ConnectionQuotas`.

At `max.connections` a broker stops accepting until a connection ends. Beyond `max.connections.per.ip` it closes a new
connection. Above `max.connection.creation.rate` it delays a new connection and all later ones. Above the quota
`connection_creation_rate` of an address it closes a new connection after a delay. All limits may change at any time.
Brokers of a cluster have no connections to one another, so only clients count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from abeyant.broker.quotas.rates import Rate
from abeyant.broker.reconfiguration import overrides

if TYPE_CHECKING:
    from abeyant.broker.settings import Settings
    from abeyant.broker.wire.connection import Connection


class ConnectionQuotas:
    """The count of one broker's accepted connections, and their limits. Use from the loop's thread only."""

    def __init__(self, settings: Settings, listener: str, broker: int, quota: Callable[[str], float | None]) -> None:
        """Start without connections. `listener` is the name of the broker's only listener.

        `quota` returns how many connections per second an address may open; None for no limit.
        """
        self._settings = settings
        self._listener = listener
        self._broker = broker
        self._quota = quota
        self._windows: int = settings["quota.window.num"]
        self._window: float = settings["quota.window.size.seconds"]
        self._rate = Rate(self._windows, self._window)
        self._rates: dict[str, Rate] = {}  # of addresses with a quota
        self._addresses: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def full(self) -> bool:
        """Return whether `max.connections` is reached. O(1)."""
        return len(self._addresses) >= self._limit("max.connections")

    @property
    def excess(self) -> int:
        """Return how many connections there are above the broker's `max.connections`; negative if there are fewer."""
        most: int = self._settings.value("max.connections", self._broker)
        return len(self._addresses) - most

    def _limit(self, name: str) -> int:
        """Return the setting `name` of the listener or of the broker, whichever is lower."""
        of_listener: int = self._settings.of_listener(name, self._listener, self._broker)
        of_broker: int = self._settings.value(name, self._broker)
        return min(of_listener, of_broker)

    def refusal(self, address: str) -> str:
        """Return the reason to refuse a client from this address; "" to accept the client. O(1)."""
        of_all: int = self._settings.value("max.connections.per.ip", self._broker)
        others = overrides(self._settings.value("max.connections.per.ip.overrides", self._broker))
        limit = others.get(address, of_all)
        if self._by_address[address] < limit:
            return ""
        return f"{address} already has {limit} connections, its limit by max.connections.per.ip"

    def delay(self, now: float) -> float:
        """Count a new connection at `now`, in seconds. Return by how many seconds to delay it and all later ones."""
        self._rate.record(now, 1)
        return min(self._rate.excess(now, self._limit("max.connection.creation.rate")), self._window)

    def delay_of(self, address: str, now: float) -> float:
        """Count a new connection from an address. Return after how many seconds to close it; 0.0 to accept it."""
        limit = self._quota(address)
        if limit is None:
            return 0.0
        rate = self._rates.setdefault(address, Rate(self._windows, self._window))
        rate.record(now, 1)
        seconds = min(rate.excess(now, limit), self._window)
        if seconds:
            rate.record(now, -1)  # it is not accepted
        return seconds

    def enter(self, connection: Connection, address: str) -> None:
        """Count a connection from `address` until `leave` is called."""
        self._addresses[connection] = address
        self._by_address[address] += 1

    def leave(self, connection: Connection) -> None:
        """Stop counting a connection. A second call does nothing."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
