"""OffsetForLeaderEpoch (key 23, versions 2-4): return where a leader epoch ended.

With it a consumer detects that the log was truncated (KIP-320).
Kafka: `ReplicaManager.lastOffsetForLeaderEpoch`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"OffsetForLeaderEpochRequest": {"replica_id": -2}}


def handle(call: Call) -> None:
    """Answer at once."""
    topics = []
    for topic in call.request.topics:
        topics.append(Message(topic=topic.topic, partitions=[_look_up(call, topic, one) for one in topic.partitions]))
    call.answer(Message(topics=topics))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(
        topics=[
            Message(topic=topic.topic, partitions=[_response(one.partition, error, -1, -1) for one in topic.partitions])
            for topic in request.topics
        ],
    )


def _look_up(call: Call, topic: Any, query: Any) -> Message:
    try:
        partition = call.partition(topic.topic, None, query.partition)
        partition.check_leader(query.current_leader_epoch)
        epoch, end = partition.log.epoch_end(query.leader_epoch)
    except ApiError as error:
        return _response(query.partition, error.code, -1, -1)
    return _response(query.partition, ErrorCode.none, epoch, end)


def _response(partition: int, error: ErrorCode, epoch: int, end: int) -> Message:
    return Message(partition=partition, error_code=error, leader_epoch=epoch, end_offset=end)
