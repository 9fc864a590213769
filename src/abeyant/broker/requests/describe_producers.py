"""DescribeProducers (key 61, versions 0-0): describe the producers of a partition.

Each with its epoch, last sequence and open transaction.
Kafka: `KafkaApis.handleDescribeProducersRequest`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.log.producers import ProducerState
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

_NONE = -1


def handle(call: Call) -> None:
    """Tell of each partition."""
    call.answer(_response(call.request, lambda name, index: _partition(call, name, index)))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return _response(request, lambda _, index: _failed(index, error, None))


def _response(request: Any, partition: Any) -> Message:
    topics = [
        Message(name=topic.name, partitions=[partition(topic.name, index) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    return Message(topics=topics)


def _partition(call: Call, name: str, index: int) -> Message:
    try:
        partition = call.partition(name, None, index)  # a follower knows them too
    except ApiError as error:
        return _failed(index, error.code, error.message)
    found = _failed(index, ErrorCode.none, None)
    found.active_producers = [_producer(state) for state in partition.log.producers.states()]
    return found


def _failed(index: int, error: ErrorCode, message: str | None) -> Message:
    return Message(partition_index=index, error_code=error, error_message=message, active_producers=[])


def _producer(state: ProducerState) -> Message:
    return Message(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=_NONE if state.transaction_start is None else state.transaction_start,
    )
