"""What the API needs of the cluster whose API it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from abeyant.broker.broker import Broker
from abeyant.broker.controller import Controller
from abeyant.broker.network import Network
from abeyant.broker.requests.common.ports import Gate

T = TypeVar("T")


class Cluster(Protocol):
    """A cluster that is open."""

    brokers: dict[int, Broker]
    controller: Controller
    gate: Gate | None
    network: Network

    def on_loop(self, action: Callable[..., T], *args: Any) -> T:
        """Call `action` in the loop's thread and return its result. From any thread."""

    def broker_named(self, number: int) -> Broker:
        """Return the broker of this id. Raises AbeyantError where there is none."""
