"""Brokers as responses name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.wire.schema import OMIT, Message

if TYPE_CHECKING:
    from abeyant.broker.partition_state import PartitionState
    from abeyant.broker.requests.common.call import Call
    from abeyant.broker.requests.common.ports import Broker


_EVERYWHERE = ("", "0.0.0.0")  # told to a client, it would look on its own machine


def host_for(call: Call, broker: Broker) -> str:
    """Where this client finds a broker: where they listen at every address, at the one by which the client has come."""
    return call.connection.host if broker.host in _EVERYWHERE else broker.host


def brokers_alive(call: Call) -> list[Message]:
    """Those that are registered and not fenced, by id."""
    cluster = call.broker.cluster
    return [
        Message(node_id=number, host=host_for(call, broker), port=broker.port, rack=cluster.settings["broker.rack"])
        for number, broker in cluster.brokers.items()
        if number in cluster.controller.members
    ]


def leader_now(state: PartitionState | None) -> Message:
    """Who leads, for a client that asked the wrong broker (KIP-951); nothing where that is not known."""
    if state is None:
        return OMIT  # type: ignore[no-any-return]
    return Message(leader_id=state.leader, leader_epoch=state.leader_epoch)
