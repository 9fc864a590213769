"""OffsetDelete (key 47, versions 0-0): delete a group's committed offsets of partitions.

Offsets of topics to which a member of the group subscribes are not deleted.
Kafka: `OffsetMetadataManager.deleteOffsets`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import State
from abeyant.broker.groups.offsets.records import OffsetKey
from abeyant.broker.groups.subscription import CONSUMER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Delete the offsets. Respond with a result for each partition."""
    request = call.request
    shard = group_shard(call, request.group_id, expire_overdue=True)
    modern = shard.consumers.get(request.group_id) or shard.streams.get(request.group_id)
    group = modern or shard.group(request.group_id)
    if modern is None and group.state is not State.EMPTY and group.protocol_type != CONSUMER:
        raise ApiError(ErrorCode.non_empty_group)
    keys = []
    existing = call.broker.cluster.controller.topics

    def delete(topic: Any, one: Any) -> Message:
        known = existing.get(topic.name)
        if known is None or not 0 <= one.partition_index < len(known.partitions):
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        if group.is_subscribed(topic.name):
            raise ApiError(ErrorCode.group_subscribed_to_topic)
        keys.append(OffsetKey(request.group_id, topic.name, one.partition_index))
        return Message(partition_index=one.partition_index)

    topics = by_topic(request.topics, delete, _failed)

    def answer(error: ErrorCode) -> None:
        call.answer(Message(error_code=error, topics=topics if error is ErrorCode.none else []))

    shard.forget_offsets(keys, answer)


def refused_rows(_: Call, request: Any, error: ErrorCode) -> Message:
    """Return a response with this error for each partition of the request."""
    rows = [
        Message(name=topic.name, partitions=[_failed(one, error) for one in topic.partitions])
        for topic in request.topics
    ]
    return Message(topics=rows)


def _failed(one: Any, error: ErrorCode) -> Message:
    return Message(partition_index=one.partition_index, error_code=error)
