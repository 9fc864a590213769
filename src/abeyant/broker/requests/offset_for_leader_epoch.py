"""OffsetForLeaderEpoch (key 23, versions 2-4): return the end offset of a leader epoch.

Consumers use it to detect that the log was truncated (KIP-320).
Kafka: `ReplicaManager.lastOffsetForLeaderEpoch`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"OffsetForLeaderEpochRequest": {"replica_id": -2}}


def handle(call: Call) -> None:
    """Respond with a result for each partition."""
    call.answer(Message(topics=by_topic(call.request.topics, partial(_look_up, call), _failed, name="topic")))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(topics=by_topic(request.topics, error, _failed, name="topic"))


def _failed(query: Any, error: ErrorCode) -> Message:
    return Message(partition=query.partition, error_code=error)


def _look_up(call: Call, topic: Any, query: Any) -> Message:
    partition = call.partition(topic.topic, None, query.partition)
    partition.check_leader(query.current_leader_epoch)
    epoch, end = partition.log.epoch_end(query.leader_epoch)
    return Message(partition=query.partition, leader_epoch=epoch, end_offset=end)
