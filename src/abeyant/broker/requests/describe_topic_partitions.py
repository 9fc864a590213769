"""DescribeTopicPartitions (key 75, versions 0-0): describe the partitions of topics, page by page (KIP-966).

Kafka: `DescribeTopicPartitionsRequestHandler`.
Not implemented: eligible leader replicas, which are always empty.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.controller import Controller
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState, Topic
from abeyant.broker.placement import invalid_name
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import TOPIC_OPERATIONS, describe_partition, describe_topic
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
    return Message(topics=[describe_topic(topic.name, None, error) for topic in request.topics], next_cursor=None)


def _missing(name: str) -> Message:
    error = ErrorCode.unknown_topic_or_partition
    if invalid_name(name) is not None:
        error = ErrorCode.invalid_topic_exception
    return describe_topic(name, None, error, operations=TOPIC_OPERATIONS)


def _described(topic: Topic, states: list[PartitionState], controller: Controller) -> Message:
    partitions = [describe_partition(state, controller) for state in states]
    return describe_topic(
        topic.name, topic.id, ErrorCode.none, internal=topic.internal, partitions=partitions,
        operations=TOPIC_OPERATIONS,
    )  # fmt: skip


def _is_within(cursor: Any, request: Any) -> bool:
    names = [topic.name for topic in request.topics]
    return cursor.partition_index >= 0 and (not names or any(name >= cursor.topic_name for name in names))
