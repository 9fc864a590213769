"""Base class of the cluster's API: its brokers and settings, calls into its loop, and lookups by name or number."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from abeyant.errors import AbeyantError, did_you_mean

if TYPE_CHECKING:
    from abeyant.broker.broker import Broker
    from abeyant.broker.clock import Clock
    from abeyant.broker.controller import Controller
    from abeyant.broker.delayed.operation import Waiting
    from abeyant.broker.network import Network
    from abeyant.broker.partition_state import PartitionState, Topic
    from abeyant.broker.requests.common.ports import Gate
    from abeyant.broker.security.protocol import Security
    from abeyant.broker.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
ClusterT = TypeVar("ClusterT", bound="BaseCluster")


class Awaited(NamedTuple):
    """A blocked call of `until_waiting`."""

    kind: str
    number: int
    client_id: str | None
    found: Future[list[Waiting]]


class BaseCluster:
    """An open cluster. Use it in the loop's thread, except `_on_loop` and `_settled`. Not for users."""

    _awaited: list[Awaited]
    brokers: dict[int, Broker]
    clock: Clock
    """The cluster's clock: `now()` in seconds; for a held clock also `advance(seconds)` and `advance_to_next()`."""
    controller: Controller
    _gate: Gate | None
    network: Network
    security: Security
    settings: Settings

    def _on_loop(self, action: Callable[..., T], *args: Any) -> T:
        """Call `action` in the loop's thread and return its result. Thread-safe. Not for users."""
        raise NotImplementedError

    def _settled(self, action: Callable[..., T], *args: Any) -> T:
        """Deliver the messages between brokers, then call `action` in the loop's thread. Not for users.

        So every request with a response has taken effect on all brokers: a transaction that committed has its markers.
        """

        def act() -> T:
            self.network.settle()
            return action(*args)

        return self._on_loop(act)

    def _waiting_now(self, kind: str | None, client_id: str | None) -> list[Waiting]:
        """Return the pending requests, oldest first; if given, only of one kind and one client. Not for users."""
        rows = [
            operation.describe(broker.id)
            for broker in self.brokers.values()
            for purgatory in broker.purgatories
            for operation in purgatory.pending()
            if kind in (None, operation.kind) and client_id in (None, operation.client_id)
        ]
        unread = (waiting for broker in self.brokers.values() if broker.paused for waiting in broker.unread())
        rows += (row for row in unread if kind in (None, row.kind) and client_id in (None, row.client_id))
        return sorted(rows, key=lambda waiting: (waiting.since, waiting.broker))

    def _check_awaited(self) -> None:
        """Complete the calls of `until_waiting` whose requests are pending now. Not for users."""
        for awaited in list(self._awaited):
            requests = self._waiting_now(awaited.kind, awaited.client_id)
            if len(requests) >= awaited.number:
                self._awaited.remove(awaited)
                awaited.found.set_result(requests)

    def _broker_named(self, number: int) -> Broker:
        """Return the broker with this id. Raises AbeyantError for an unknown id. Not for users."""
        broker = self.brokers.get(number)
        if broker is None:
            least, most = min(self.brokers), max(self.brokers)
            raise AbeyantError(f"there is no broker {number!r}: there are brokers {least} to {most}")
        return broker

    def _topic_named(self, name: str) -> Topic:
        """Return the topic with this name. Raises AbeyantError for an unknown name. Not for users."""
        topic = self.controller.topics.get(name)
        if topic is None:
            raise AbeyantError(f"there is no topic {name!r}{did_you_mean(str(name), self.controller.topics)}")
        return topic

    def _partition_state(self, topic: str, partition: int) -> PartitionState:
        """Return the controller's state of a partition. Raises AbeyantError for an unknown one. Not for users."""
        partitions = self._topic_named(topic).partitions
        if type(partition) is not int or not 0 <= partition < len(partitions):
            raise AbeyantError(f"topic {topic!r} has partitions 0 to {len(partitions) - 1}, and no {partition!r}")
        return partitions[partition]


def settled(
    method: Callable[Concatenate[ClusterT, P], T],
) -> Callable[Concatenate[ClusterT, P], T]:
    """Let any thread call a method: deliver the messages between brokers, then run it in the loop's thread."""

    @wraps(method)
    def run(self: ClusterT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._settled(lambda: method(self, *args, **kwargs))

    return run
