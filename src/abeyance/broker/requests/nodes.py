"""Brokers as responses name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyance.broker.wire.schema import OMIT, Message

if TYPE_CHECKING:
    from abeyance.broker.cluster import Cluster
    from abeyance.broker.partition_state import PartitionState


def brokers_alive(cluster: Cluster) -> list[Message]:
    """Those that are registered and not fenced, by id."""
    return [
        Message(node_id=number, host=broker.host, port=broker.port, rack=cluster.settings["broker.rack"])
        for number, broker in cluster.brokers.items()
        if number in cluster.controller.members
    ]


def leader_now(state: PartitionState | None) -> Message:
    """Who leads, for a client that asked the wrong broker (KIP-951); nothing where that is not known."""
    if state is None:
        return OMIT  # type: ignore[no-any-return]
    return Message(leader_id=state.leader, leader_epoch=state.leader_epoch)
