"""ListOffsets (key 2, versions 1-11): find an offset by timestamp, the earliest or latest offset, or the newest record.

Kafka: `KafkaApis.handleListOffsetRequest`.
Not implemented: offsets in tiered storage, which are -1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "ListOffsetsRequest": {"isolation_level": 0, "timeout": NO_TIME},
    "ListOffsetsPartition": {"current_leader_epoch": -1},
}
_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_EARLIEST_PENDING_UPLOAD = -6
_CONSUMER, _DEBUGGING = -1, -2
# The first version with each special timestamp
_SINCE = {
    _LATEST: 0, _EARLIEST: 0, _MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11,
}  # fmt: skip
_NEVER = 1 << 15
_Offset = tuple[int, int, int]  # timestamp, offset, leader epoch


def handle(call: Call) -> None:
    """Look up the offsets. Respond with a result for each partition."""
    call.answer(Message(topics=by_topic(call.request.topics, partial(_result, call), _failed, key="partition_index")))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(topics=by_topic(request.topics, error, _failed))


def _failed(query: Any, error: ErrorCode) -> Message:
    return Message(partition_index=query.partition_index, error_code=error)


def _result(call: Call, topic: Any, query: Any) -> Message:
    timestamp, offset, epoch = _look_up(call, topic.name, query)
    return Message(partition_index=query.partition_index, timestamp=timestamp, offset=offset, leader_epoch=epoch)


def _look_up(call: Call, name: str, query: Any) -> _Offset:
    request = call.request
    if query.timestamp < 0 and call.version < _SINCE.get(query.timestamp, _NEVER):
        raise ApiError(ErrorCode.unsupported_version)
    if query.current_leader_epoch < -1:
        raise ApiError(ErrorCode.fenced_leader_epoch)
    partition = call.partition(name, None, query.partition_index)
    partition.check_leader(query.current_leader_epoch, leader_only=request.replica_id != _DEBUGGING)
    log = partition.log
    if request.replica_id == _CONSUMER:
        end = partition.last_stable_offset if request.isolation_level == 1 else partition.high_watermark
    else:
        end = log.end_offset
    if query.timestamp == _LATEST:
        return -1, end, partition.state.leader_epoch
    if query.timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        epoch = log.epochs.at(log.start_offset)
        return -1, log.start_offset, -1 if epoch is None else epoch
    if query.timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1  # no tiered storage
    entry = log.max_timestamp() if query.timestamp == _MAX_TIMESTAMP else log.offset_for_time(query.timestamp)
    if entry is None or entry.offset >= end:
        return -1, -1, -1
    return entry.timestamp, entry.offset, -1 if entry.leader_epoch is None else entry.leader_epoch
