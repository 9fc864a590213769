"""A request between brokers. In Kafka it is sent over the wire; here it is a message that is never encoded.

It is handled like a client's request, so faults apply to it, and it waits while its receiver is paused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.requests.common.call import BaseCall
from abeyant.broker.wire.apis import BY_NAME, Api

if TYPE_CHECKING:
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.broker.wire.schema import ErrorCode, Message


class DelayedPeerResponse(BrokerOperation):
    """A sender's wait for another broker's response, in its InterBroker purgatory, keyed by the receiver's id."""

    __slots__ = ("_partitions", "_receiver", "_response", "_then")

    kind = "InterBroker"

    def __init__(
        self,
        timeout: float,
        receiver: Broker | None,
        partitions: Sequence[tuple[str, int]],
        client_id: str,
        since: float,
        then: Callable[[Any], object],
    ) -> None:
        """Wait at most `timeout` seconds. Call `then` once, with the response, or None if none came."""
        super().__init__(timeout, client_id, since)
        self._receiver = receiver
        self._partitions = partitions
        self._response: Any = None
        self._then = then

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions that the request names."""
        return self._partitions

    def receive(self, response: Any) -> None:
        """Complete with the response, or with None if request or response was lost."""
        self._response = response
        self.force_complete()

    def try_complete(self) -> bool:
        """Complete without a response if the receiver has stopped or does not exist."""
        return (self._receiver is None or self._receiver.stopped) and self.force_complete()

    def on_complete(self) -> None:
        """Call `then` with the response, or with None."""
        self._then(self._response)


class PeerCall(BaseCall):
    """A request from another broker, which this call's `broker` has received."""

    __slots__ = ("_sender", "_waiting")

    def __init__(
        self, sender: Broker, receiver: Broker, api: Api, request: Message, waiting: DelayedPeerResponse
    ) -> None:
        super().__init__(receiver, api, api.highest, waiting.client_id, request)
        self._sender = sender
        self._waiting = waiting

    def answer(self, response: Any) -> None:
        """Send the response to the other broker."""
        self._send(None if self._lost else response)

    def refuse(self, error: ErrorCode) -> None:
        """Respond with an error for everything in the request, without handling it."""
        self.answer(self.api.error_response(self.request, error))

    def drop(self) -> None:
        """Drop the request. The sender gets no response, as from a closed connection."""
        self._send(None)

    def _send(self, response: Any) -> None:
        self.broker.cluster.network.send(self._sender, self._waiting.receive, response)

    def __repr__(self) -> str:
        return f"<{self.api.name} of broker {self._sender.id} at broker {self.broker.id}>"


def ask(
    sender: Broker,
    number: int,
    name: str,
    request: Message,
    partitions: Sequence[tuple[str, int]],
    client_id: str,
    then: Callable[[Any], object],
) -> None:
    """Send a request of API `name`, in its highest version, to broker `number`, which may be the sender itself.

    `partitions` are the partitions that the request names. `then` gets the response, or None if the other broker
    stopped, the request was lost, or `request.timeout.ms` passed.
    """
    receiver = sender.cluster.brokers.get(number)
    waiting = DelayedPeerResponse(sender.request_timeout, receiver, partitions, client_id, sender.now(), then)
    if sender.inter_broker_purgatory.try_complete_else_watch(waiting, [number]):
        return
    assert receiver is not None
    sender.cluster.network.send(receiver, _receive, sender, receiver, BY_NAME[name], request, waiting)


def _receive(sender: Broker, receiver: Broker, api: Api, request: Message, waiting: DelayedPeerResponse) -> None:
    call: Any = PeerCall(sender, receiver, api, request, waiting)
    gate = receiver.cluster._gate
    if gate is None or not gate(call):
        receiver.handle(call)
