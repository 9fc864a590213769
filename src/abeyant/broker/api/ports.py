"""What the API needs of the cluster whose API it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from abeyant.broker.broker import Broker
from abeyant.broker.controller import Controller
from abeyant.broker.network import Network
from abeyant.broker.partition_state import PartitionState, Topic
from abeyant.broker.requests.common.ports import Gate
from abeyant.broker.security.protocol import Security

T = TypeVar("T")


class Cluster(Protocol):
    """A cluster that is open."""

    brokers: dict[int, Broker]
    controller: Controller
    gate: Gate | None
    network: Network
    security: Security

    @property
    def awaited(self) -> Sequence[object]:
        """Return the calls of `until_waiting` that block."""

    def on_loop(self, action: Callable[..., T], *args: Any) -> T:
        """Call `action` in the loop's thread and return its result. From any thread."""

    def settled(self, action: Callable[..., T], *args: Any) -> T:
        """Deliver what brokers have sent one another first; the rest as `on_loop`."""

    def check_awaited(self) -> None:
        """Complete the calls of `until_waiting` whose requests wait now."""

    def broker_named(self, number: int) -> Broker:
        """Return the broker of this id. Raises AbeyantError where there is none."""

    def topic_named(self, name: str) -> Topic:
        """Return the topic of this name. Raises AbeyantError where there is none."""

    def partition_state(self, topic: str, partition: int) -> PartitionState:
        """Return what the controller knows of a partition. Raises AbeyantError where there is none."""
