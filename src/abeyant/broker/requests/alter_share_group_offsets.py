"""AlterShareGroupOffsets (key 91, versions 0-0): set the start offsets of a share group without members.

Kafka: `GroupCoordinatorService.alterShareGroupOffsets`.
"""

from __future__ import annotations

import uuid
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.share.states import Results
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.features import UNSUPPORTED, require_shares
from abeyant.broker.wire.schema import ErrorCode, Message

_UNKNOWN = ApiError(
    ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition."
)  # as Kafka words it


def handle(call: Call) -> None:
    """Initialize the states of share partitions at the requested start offsets, then respond."""
    require_shares(call, UNSUPPORTED)
    request = call.request
    if not request.group_id:
        raise ApiError(ErrorCode.invalid_group_id, "The group id is invalid.")
    shard = group_shard(call, request.group_id, expire_overdue=True)
    group = shard.find(request.group_id)
    if group is not None and shard.share_group(request.group_id).members:
        raise ApiError(ErrorCode.non_empty_group, "The group is not empty.")
    topics = call.broker.cluster.controller.topics
    offsets: dict[tuple[uuid.UUID, int], int] = {}
    partitions: dict[uuid.UUID, tuple[str, frozenset[int]]] = {}
    for topic in request.topics:
        existing = topics.get(topic.topic_name)
        for row in topic.partitions if existing is not None else ():
            if existing is not None and 0 <= row.partition_index < len(existing.partitions):
                offsets[existing.id, row.partition_index] = row.start_offset
                indexes = partitions[existing.id][1] if existing.id in partitions else frozenset()
                partitions[existing.id] = (existing.name, indexes | {row.partition_index})

    def answer(results: Results) -> None:
        call.answer(Message(responses=[_topic(call, topic, results) for topic in request.topics]))

    def begun(error: ErrorCode) -> None:
        if error is ErrorCode.none:
            shard.share_states.initialize(request.group_id, epoch, partitions, offsets, answer)
        else:
            call.answer(Message(error_code=error, responses=[]))

    if not partitions:
        answer({})
        return
    epoch = shard.shares[request.group_id].epoch if request.group_id in shard.shares else 1
    shard.write_and_replay([shard.share_states.begin(request.group_id, partitions)], begun)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(error_code=error, responses=[])


def refused_rows(call: Call, request: Any, error: ErrorCode) -> Message:
    """Return a response with this error for each partition of the request."""
    topics = call.broker.cluster.controller.topics
    rows = [
        Message(
            topic_name=topic.topic_name,
            topic_id=topics[topic.topic_name].id if topic.topic_name in topics else None,
            partitions=[Message(partition_index=row.partition_index, error_code=error) for row in topic.partitions],
        )
        for topic in request.topics
    ]
    return Message(responses=rows)


def _topic(call: Call, topic: Any, results: Results) -> Message:
    existing = call.broker.cluster.controller.topics.get(topic.topic_name)
    rows = []
    for row in topic.partitions:
        error = _UNKNOWN if existing is None else results.get((existing.id, row.partition_index), (_UNKNOWN, None))[0]
        rows.append(
            Message(
                partition_index=row.partition_index,
                error_code=ErrorCode.none if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
    return Message(topic_name=topic.topic_name, topic_id=None if existing is None else existing.id, partitions=rows)
