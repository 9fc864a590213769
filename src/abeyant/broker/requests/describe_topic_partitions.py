"""DescribeTopicPartitions (key 75, versions 0-0): describe the partitions of topics, page by page (KIP-966).

Kafka: `DescribeTopicPartitionsRequestHandler`.
Not implemented: eligible leader replicas, which are always empty.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.placement import invalid_name
from abeyant.broker.requests.common.allowed import may_describe
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import TOPIC_OPERATIONS, describe_topic
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Describe as many partitions as the limit allows. `next_cursor` is the first partition left out."""
    request = call.request
    controller = call.broker.cluster.controller
    limit = call.broker.cluster.settings["max.request.partition.size.limit"]
    remaining = max(1, min(request.response_partition_limit, limit))
    cursor = request.cursor
    if cursor is not None and not _is_within(cursor, request):
        raise ApiError(ErrorCode.invalid_request)
    every = not request.topics
    visible = (name for name in controller.topics if may_describe(call, name))  # else a cursor could name a hidden one
    names = sorted(visible if every else {topic.name for topic in request.topics})
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    topics = []
    next_cursor = None
    for name in names:
        if not remaining:
            next_cursor = Message(topic_name=name, partition_index=0)
            break
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        topic = controller.topics.get(name)
        if topic is None:
            error = ErrorCode.invalid_topic_exception if invalid_name(name) else ErrorCode.unknown_topic_or_partition
            topics.append(Message(name=name, error_code=error, topic_authorized_operations=TOPIC_OPERATIONS))
            continue
        states = topic.partitions[max(first, 0) :]
        topics.append(describe_topic(topic, states[:remaining], controller, TOPIC_OPERATIONS))
        if len(states) > remaining:
            next_cursor = Message(topic_name=name, partition_index=states[remaining].partition)
            break
        remaining -= len(states)
    call.answer(Message(topics=topics, next_cursor=next_cursor))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(topics=[Message(name=topic.name, error_code=error) for topic in request.topics])


def _is_within(cursor: Any, request: Any) -> bool:
    names = [topic.name for topic in request.topics]
    return cursor.partition_index >= 0 and (not names or any(name >= cursor.topic_name for name in names))
