"""Build parts of responses: topics, partitions, their leaders, brokers, authorized operations."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from abeyant.broker.controller import Controller
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState, Topic
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.requests.common.ports import Broker

# Sets of authorized operations, as bits: all that a resource has. With ACLs, hidden.py removes the unauthorized ones.
CLUSTER_OPERATIONS = 0b1111110100000
TOPIC_OPERATIONS = 0b110111111000
GROUP_OPERATIONS = 0b110101001000
NO_OPERATIONS = -(1 << 31)  # not requested

MOVED = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)
"""The errors with which Produce, Fetch and the share APIs name the current leader (KIP-951)."""


_EVERYWHERE = ("", "0.0.0.0")  # listening addresses that a client cannot connect to


def address_for(call: Call, broker: Broker) -> tuple[str, int]:
    """Return the host and port at which this client reaches a broker.

    They are the advertised host and port. If that host is a wildcard, use the address that the client connected to.
    """
    host, port = broker.advertised
    return call.connection.host if host in _EVERYWHERE else host, port


def live_brokers(call: Call) -> list[Message]:
    """Return the brokers that are registered and not fenced, ordered by id."""
    cluster = call.broker.cluster
    return [
        Message(node_id=number, host=host, port=port, rack=cluster.settings.rack(number))
        for number, broker in cluster.brokers.items()
        if number in cluster.controller.members
        for host, port in [address_for(call, broker)]
    ]


def describe_topic(
    topic: Topic, states: Iterable[PartitionState], controller: Controller, operations: int = NO_OPERATIONS
) -> Message:
    """Return a topic with these partitions, for Metadata or DescribeTopicPartitions."""
    return Message(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[_describe_partition(state, controller) for state in states],
        topic_authorized_operations=operations,
    )


def _describe_partition(state: PartitionState, controller: Controller) -> Message:
    return Message(
        error_code=ErrorCode.none if state.leader in controller.members else ErrorCode.leader_not_available,
        partition_index=state.partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[broker for broker in state.replicas if broker not in controller.members],
    )


def name_leader(response: Message, call: Call, name: str | None, topic_id: uuid.UUID | None, index: int) -> None:
    """Set the current leader, if known, in a partition's response whose error is in `MOVED`."""
    state = _state(call, name, topic_id, index)
    if state is not None:
        response.current_leader = Message(leader_id=state.leader, leader_epoch=state.leader_epoch)


def leaders_of(call: Call, partitions: Iterable[tuple[str | None, uuid.UUID | None, int]]) -> list[Message]:
    """Return the brokers that lead these partitions."""
    leaders = {state.leader for key in partitions if (state := _state(call, *key)) is not None}
    return [node for node in live_brokers(call) if node.node_id in leaders]


def _state(call: Call, name: str | None, topic_id: uuid.UUID | None, index: int) -> PartitionState | None:
    try:
        return call.broker.cluster.controller.topic_of(name, topic_id).partitions[index]
    except (ApiError, IndexError):
        return None
