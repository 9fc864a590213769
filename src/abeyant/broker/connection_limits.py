"""Limits of a broker's connections by its settings: all of them, per address, per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.reconfiguration import overrides

if TYPE_CHECKING:
    from abeyant.broker.settings import Settings


class ConnectionLimits:
    """Those of one broker, as its settings are now."""

    def __init__(self, settings: Settings, listener: str, broker: int) -> None:
        """Take the settings; `listener` is the name of the broker's only one."""
        self._settings = settings
        self._listener = listener
        self._broker = broker

    def of_broker(self) -> int:
        """Return the limit of all the broker's connections: those above it are closed."""
        limit: int = self._settings.value("max.connections", self._broker)
        return limit

    def connections(self) -> int:
        """Return the limit of the listener's connections, which are all the broker's: none above it is accepted."""
        own: int = self._settings.of_listener("max.connections", self._listener, self._broker)
        return min(own, self.of_broker())

    def connections_per_second(self) -> int:
        """Return the limit of connections accepted per second: the listener's, but no more than the broker's."""
        name = "max.connection.creation.rate"
        own: int = self._settings.of_listener(name, self._listener, self._broker)
        all_listeners: int = self._settings.value(name, self._broker)
        return min(own, all_listeners)

    def connections_of(self, address: str) -> int:
        """Return the limit of connections from one address."""
        limit: int = self._settings.value("max.connections.per.ip", self._broker)
        text: str = self._settings.value("max.connections.per.ip.overrides", self._broker)
        return overrides(text).get(address, limit)
