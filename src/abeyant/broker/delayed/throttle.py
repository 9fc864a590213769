"""Throttled channels: connections from which no request is read until a deadline (KIP-219).

Their last response, with `throttle_time_ms`, is sent at once. A client that respects this time sends nothing meanwhile;
the requests of a client that ignores it wait in the socket. Kafka: `ThrottledChannel`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from abeyant.broker.delayed.operation import Throttled

if TYPE_CHECKING:
    from abeyant import Purgatory
    from abeyant.broker.wire.connection import Connection


class ThrottledChannels:
    """The throttled channels of one broker. Use from the loop's thread only."""

    def __init__(self, purgatory: Purgatory[Any], now: Callable[[], float]) -> None:
        """Start without channels. `now` returns seconds on the cluster's clock."""
        self._purgatory = purgatory
        self._now = now
        self._channels: dict[Connection, Throttled] = {}

    def mute(self, connection: Connection, seconds: float, api: str, quota: str) -> None:
        """Read no request of a connection for `seconds`. Call this before `Connection.answer` with `mute=True`."""

        def end() -> None:
            self._channels.pop(connection, None)
            connection.unmute()

        channel = Throttled(seconds, (api, quota), connection.client_id, self._now(), end)
        self._channels[connection] = channel
        self._purgatory.try_complete_else_watch(channel, [channel])

    def forget(self, connection: Connection) -> None:
        """Drop a closed connection: complete its wait in the purgatory."""
        channel = self._channels.get(connection)
        if channel is not None:
            channel.force_complete()
