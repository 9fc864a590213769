"""DescribeTopicPartitions (key 75, versions 0-0): describe the partitions of topics, page by page (KIP-966).

Kafka: `DescribeTopicPartitionsRequestHandler`.
Not implemented: eligible leader replicas, which are always empty.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.controller import Controller
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState, Topic
from abeyant.broker.placement import complaint_about
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.metadata import NO_OPERATIONS, TOPIC_OPERATIONS
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Describe as many partitions as the limit allows; `next_cursor` is the first of the rest."""
    request = call.request
    controller = call.broker.cluster.controller
    most = call.broker.cluster.settings["max.request.partition.size.limit"]
    left = max(1, min(request.response_partition_limit, most))
    cursor = request.cursor
    if cursor is not None and not _is_within(cursor, request):
        raise ApiError(ErrorCode.invalid_request)
    every = not request.topics
    names = sorted(controller.topics if every else {topic.name for topic in request.topics})
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    topics = []
    next_cursor = None
    for name in names:
        if not left:
            next_cursor = Message(topic_name=name, partition_index=0)
            break
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        topic = controller.topics.get(name)
        if topic is None:
            topics.append(_missing(name))
            continue
        states = topic.partitions[max(first, 0) :]
        topics.append(_described(topic, states[:left], controller))
        if len(states) > left:
            next_cursor = Message(topic_name=name, partition_index=states[left].partition)
            break
        left -= len(states)
    call.answer(Message(topics=topics, next_cursor=next_cursor))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(
        topics=[_topic(topic.name, None, error, False, []) for topic in request.topics],
        next_cursor=None,
    )  # fmt: skip


def _missing(name: str) -> Message:
    error = ErrorCode.unknown_topic_or_partition
    if complaint_about(name) is not None:
        error = ErrorCode.invalid_topic_exception
    missing = _topic(name, None, error, False, [])
    missing.topic_authorized_operations = TOPIC_OPERATIONS
    return missing


def _described(topic: Topic, states: list[PartitionState], controller: Controller) -> Message:
    partitions = [_partition(state, controller) for state in states]
    described = _topic(topic.name, topic.id, ErrorCode.none, topic.internal, partitions)
    described.topic_authorized_operations = TOPIC_OPERATIONS
    return described


def _topic(name: str, topic_id: Any, error: ErrorCode, internal: bool, partitions: list[Message]) -> Message:
    return Message(
        error_code=error, name=name, topic_id=topic_id, is_internal=internal, partitions=partitions,
        topic_authorized_operations=NO_OPERATIONS,
    )  # fmt: skip


def _is_within(cursor: Any, request: Any) -> bool:
    names = [topic.name for topic in request.topics]
    return cursor.partition_index >= 0 and (not names or any(name >= cursor.topic_name for name in names))


def _partition(state: PartitionState, controller: Controller) -> Message:
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
