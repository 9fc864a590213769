"""A request of one broker to another: waits for the answer, or for the end of the one that was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from abeyant.broker.delayed.operation import BrokerOperation


class Peer(Protocol):
    """The broker that is asked."""

    stopped: bool


class DelayedPeerAnswer(BrokerOperation):
    """In the InterBroker purgatory of the broker that asks, keyed by the id of the one that it asks."""

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
        """`timeout` in seconds; `then` is called once, with the response, or with None where none has come."""
        super().__init__(timeout, client_id, since)
        self._asked = asked
        self._partitions = partitions
        self._response: Any = None
        self._then = then

    def keys(self) -> Iterable[tuple[str, int]]:
        """What the request is about."""
        return self._partitions

    def answered(self, response: Any) -> None:
        """The answer has come; None when it was lost on its way."""
        self._response = response
        self.force_complete()

    def try_complete(self) -> bool:
        """Complete, without an answer, when the broker that was asked has stopped."""
        return (self._asked is None or self._asked.stopped) and self.force_complete()

    def on_complete(self) -> None:
        """Go on."""
        self._then(self._response)
