"""DeleteRecords (key 21, versions 0-2): move the start of logs, and wait until that of every replica has moved (K6).

Kafka: `KafkaApis.handleDeleteRecordsRequest`, `ReplicaManager.deleteRecords`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.delayed.delete_records import DelayedDeleteRecords, Deleted
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.partitions import partition_of
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message, seconds

FILL: dict[str, dict[str, object]] = {}


def handle(call: Call) -> None:
    """Delete, then wait."""
    topics: list[tuple[str, list[tuple[int, Deleted | ErrorCode]]]] = []
    for topic in call.request.topics:
        topics.append(
            (topic.name, [(asked.partition_index, _delete(call, topic, asked)) for asked in topic.partitions])
        )
    waiting = [one for _, results in topics for _, one in results if isinstance(one, Deleted)]
    if not waiting:
        _answer(call, topics)
        return
    operation = DelayedDeleteRecords(
        seconds(call.request.timeout), waiting, call.client_id, call.since, lambda: _answer(call, topics)
    )
    call.broker.delete_records_purgatory.try_complete_else_watch(operation, [one.partition for one in waiting])


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(
        throttle_time=NO_TIME,
        topics=[
            Message(
                name=topic.name,
                partitions=[_response(asked.partition_index, error, -1) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _delete(call: Call, topic: Any, asked: Any) -> Deleted | ErrorCode:
    try:
        partition = partition_of(call.broker, topic.name, None, asked.partition_index)
        if not partition.log.config.delete and partition.log.config.compact:
            raise ApiError(ErrorCode.policy_violation)
        return Deleted(partition, partition.delete_records(asked.offset))
    except ApiError as error:
        return error.code


def _answer(call: Call, topics: list[tuple[str, list[tuple[int, Deleted | ErrorCode]]]]) -> None:
    call.answer(
        Message(
            throttle_time=NO_TIME,
            topics=[
                Message(name=name, partitions=[_responded(index, one) for index, one in results])
                for name, results in topics
            ],
        )
    )


def _responded(index: int, one: Deleted | ErrorCode) -> Message:
    if isinstance(one, ErrorCode):
        return _response(index, one, -1)
    return _response(index, one.error, one.low_watermark)


def _response(index: int, error: ErrorCode, low_watermark: int) -> Message:
    return Message(partition_index=index, error_code=error, low_watermark=low_watermark)
