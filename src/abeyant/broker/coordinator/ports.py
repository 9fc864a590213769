"""Protocol of the broker that a coordinator runs on, with a way to call other brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from abeyant import Purgatory
from abeyant.broker.replica import ports
from abeyant.broker.wire.schema import Message


class Broker(ports.Broker, Protocol):
    """The interface of a broker for its coordinators."""

    rebalance_purgatory: Purgatory[Any]
    heartbeat_purgatory: Purgatory[Any]
    share_fetch_purgatory: Purgatory[Any]
    share_lock_purgatory: Purgatory[Any]
    request_timeout: float  # seconds

    def ask(
        self,
        number: int,
        api: str,
        request: Message,
        partitions: Sequence[tuple[str, int]],
        client_id: str,
        then: Callable[[Any], object],
    ) -> None:
        """Call an API of broker `number`. `then` gets the response, or None without one. See common/peer_call."""
