"""Topics and partitions in requests and responses: duplicates, descriptions, authorized operations, leaders."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from abeyant.broker.controller import Controller
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.nodes import brokers_alive
from abeyant.broker.wire.schema import OMIT, ErrorCode, Message

# Sets of operations, as bits: all of them, since there is no authorization.
CLUSTER_OPERATIONS = 0b1111110100000
TOPIC_OPERATIONS = 0b110111111000
GROUP_OPERATIONS = 0b110101001000
NO_OPERATIONS = -(1 << 31)  # the request does not ask for them

MOVED = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)
"""The errors with which Produce and Fetch name the current leader (KIP-951)."""


def describe_topic(
    name: str | None,
    topic_id: uuid.UUID | None,
    error: ErrorCode,
    *,
    internal: bool = False,
    partitions: Iterable[Message] = (),
    operations: int = NO_OPERATIONS,
) -> Message:
    """Return a topic for Metadata or DescribeTopicPartitions."""
    return Message(
        error_code=error, name=name, topic_id=topic_id, is_internal=internal, partitions=[*partitions],
        topic_authorized_operations=operations,
    )  # fmt: skip


def describe_partition(state: PartitionState, controller: Controller) -> Message:
    """Return a partition for Metadata or DescribeTopicPartitions."""
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


def current_leader(call: Call, name: str | None, topic_id: uuid.UUID | None, index: int) -> Message:
    """Return the leader for a client that sent its request to the wrong broker; OMIT if unknown."""
    state = _state(call, name, topic_id, index)
    return OMIT if state is None else Message(leader_id=state.leader, leader_epoch=state.leader_epoch)


def leaders_of(call: Call, partitions: Iterable[tuple[str | None, uuid.UUID | None, int]]) -> list[Message]:
    """Return the brokers that lead these partitions."""
    leaders = {state.leader for key in partitions if (state := _state(call, *key)) is not None}
    return [node for node in brokers_alive(call) if node.node_id in leaders]


def _state(call: Call, name: str | None, topic_id: uuid.UUID | None, index: int) -> PartitionState | None:
    try:
        return call.broker.cluster.controller.topic_of(name, topic_id).partitions[index]
    except (ApiError, IndexError):
        return None


def each_once(items: Iterable[Any], key: str) -> Iterator[tuple[Any, bool]]:
    """Yield the last item for each value of the attribute `key`, and whether there are several."""
    by_key: dict[object, list[Any]] = {}
    for item in items:
        by_key.setdefault(getattr(item, key), []).append(item)
    return ((same[-1], len(same) > 1) for same in by_key.values())
