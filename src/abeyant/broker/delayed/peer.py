"""The operation behind a request between brokers: it waits for the response, or until the other broker stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from abeyant.broker.delayed.operation import BrokerOperation


class Peer(Protocol):
    """The broker that gets the request."""

    stopped: bool


class DelayedPeerAnswer(BrokerOperation):
    """Waits in the InterBroker purgatory of the sender, keyed by the id of the receiver."""

    __slots__ = ("_asked", "_partitions", "_response", "_then")

    kind = "InterBroker"

    def __init__(
        self,
        timeout: float,
        asked: Peer | None,
        partitions: Sequence[tuple[str, int]],
        client_id: str,
        since: float,
        then: Callable[[Any], object],
    ) -> None:
        """Wait for at most `timeout` seconds; `then` is called once, with the response, or None without one."""
        super().__init__(timeout, client_id, since)
        self._asked = asked
        self._partitions = partitions
        self._response: Any = None
        self._then = then

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions that the request is about."""
        return self._partitions

    def answered(self, response: Any) -> None:
        """Complete with the response; None when it was lost."""
        self._response = response
        self.force_complete()

    def try_complete(self) -> bool:
        """Complete without a response when the receiver has stopped."""
        return (self._asked is None or self._asked.stopped) and self.force_complete()

    def on_complete(self) -> None:
        """Pass the response on."""
        self._then(self._response)
