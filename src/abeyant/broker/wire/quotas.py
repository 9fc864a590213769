"""Limits of a broker's connections: in total, per address, per second. Kafka: `ConnectionQuotas`.

At `max.connections` a broker stops accepting until one ends; beyond `max.connections.per.ip` it closes the client;
above `max.connection.creation.rate` it delays the connection and all after it. The settings may change at any time.
Brokers of a cluster have no connections to one another, so only clients count.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from abeyant.broker.reconfiguration import overrides

if TYPE_CHECKING:
    from abeyant.broker.settings import Settings
    from abeyant.broker.wire.connection import Connection


class ConnectionQuotas:
    """Counts one broker's connections, from when they are accepted. Use from the loop's thread only."""

    def __init__(self, settings: Settings, listener: str, broker: int) -> None:
        """Start without connections. `listener` is the name of the broker's only listener."""
        self._settings = settings
        self._listener = listener
        self._broker = broker
        self._rate = ConnectionRate(settings["quota.window.num"], settings["quota.window.size.seconds"])
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
        """Return by how many connections the broker exceeds its limit, which may have changed."""
        most: int = self._settings.value("max.connections", self._broker)
        return len(self._addresses) - most

    def _limit(self, name: str) -> int:
        """Return the lower of the listener's limit and the broker's."""
        of_listener: int = self._settings.of_listener(name, self._listener, self._broker)
        of_broker: int = self._settings.value(name, self._broker)
        return min(of_listener, of_broker)

    def refusal(self, address: str) -> str:
        """Return why to refuse a client from this address; "" to accept it. O(1)."""
        of_all: int = self._settings.value("max.connections.per.ip", self._broker)
        others = overrides(self._settings.value("max.connections.per.ip.overrides", self._broker))
        limit = others.get(address, of_all)
        if self._by_address[address] < limit:
            return ""
        return f"{address} has {limit} connections already, its limit by max.connections.per.ip"

    def delay(self, now: float) -> float:
        """Count a connection at `now`. Return by how many seconds to delay it and all after it."""
        return self._rate.record(now, self._limit("max.connection.creation.rate"))

    def enter(self, connection: Connection, address: str) -> None:
        """Count a connection, until `leave`."""
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


class ConnectionRate:
    """Measures connections per second over windows, which allows bursts. Kafka: `Rate`, `SampledStat`."""

    def __init__(self, windows: int, window: float) -> None:
        """Measure over `windows` windows of `window` seconds each, the current one included."""
        self._count = windows
        self._window = window
        self._windows: deque[tuple[float, int]] = deque()  # (start, connections) of each

    def record(self, now: float, limit: int) -> float:
        """Count a connection at `now`. Return by how many seconds to delay it, at most one window. O(windows)."""
        windows = self._windows
        if windows and now - windows[-1][0] < self._window:
            began, count = windows.pop()
            windows.append((began, count + 1))
        else:
            windows.append((now, 1))
        while now - windows[0][0] >= self._count * self._window:
            windows.popleft()
        # The rate covers at least all windows but the current one, even if the broker has just started.
        elapsed = now - windows[0][0]
        missing = max(0, self._count - 1 - int(elapsed / self._window))
        seconds = elapsed + missing * self._window
        allowed = limit * seconds
        excess = sum(count for _, count in windows) - allowed
        return min(excess / limit, self._window) if excess > 0 else 0.0
