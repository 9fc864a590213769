"""Brokers in responses: hosts and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.wire.schema import Message

if TYPE_CHECKING:
    from abeyant.broker.requests.common.call import Call
    from abeyant.broker.requests.common.ports import Broker


_EVERYWHERE = ("", "0.0.0.0")  # a client would look for these on its own machine


def host_for(call: Call, broker: Broker) -> str:
    """Return the host of a broker for this client: its own address where the broker listens at every address."""
    return call.connection.host if broker.host in _EVERYWHERE else broker.host


def brokers_alive(call: Call) -> list[Message]:
    """Return the brokers that are registered and not fenced, in the order of their ids."""
    cluster = call.broker.cluster
    return [
        Message(node_id=number, host=host_for(call, broker), port=broker.port, rack=cluster.settings["broker.rack"])
        for number, broker in cluster.brokers.items()
        if number in cluster.controller.members
    ]
