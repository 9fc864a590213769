"""OffsetDelete (key 47, versions 0-0): delete a group's offsets in topics.

Topics to which a member of the group subscribes are refused.
Kafka: `OffsetMetadataManager.deleteOffsets`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import State
from abeyant.broker.groups.offsets.records import OffsetKey
from abeyant.broker.groups.subscription import CONSUMER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.groups import shard_of
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Delete the offsets, and answer with a result for each partition."""
    request = call.request
    shard = shard_of(call, request.group_id)
    group = shard.consumers.get(request.group_id) or shard.group(request.group_id)
    if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
        raise ApiError(ErrorCode.non_empty_group)
    keys = []
    topics = []
    present = call.broker.cluster.controller.topics
    for topic in request.topics:
        known = present.get(topic.name)
        partitions = []
        for index in (one.partition_index for one in topic.partitions):
            if known is None or not 0 <= index < len(known.partitions):
                error_code = ErrorCode.unknown_topic_or_partition
            elif group.is_subscribed(topic.name):
                error_code = ErrorCode.group_subscribed_to_topic
            else:
                error_code = ErrorCode.none
                keys.append(OffsetKey(request.group_id, topic.name, index))
            partitions.append(Message(partition_index=index, error_code=error_code))
        topics.append(Message(name=topic.name, partitions=partitions))
    shard.forget_offsets(keys, lambda error: call.answer(_response(error, topics if error is ErrorCode.none else [])))


def refused(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(error, [])


def _response(error: ErrorCode, topics: list[Message]) -> Message:
    return Message(error_code=error, topics=topics)
