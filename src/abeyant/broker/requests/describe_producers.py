"""DescribeProducers (key 61, versions 0-0): describe the producers of a partition.

Each producer is described with its epoch, last sequence number and open transaction.
Kafka: `KafkaApis.handleDescribeProducersRequest`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.log.producers import ProducerState
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import ErrorCode, Message

_NONE = -1


def handle(call: Call) -> None:
    """Describe the producers of each partition; a follower does this as well as the leader."""
    topics = by_topic(call.request.topics, partial(_partition, call), _failed, partitions="partition_indexes")
    call.answer(Message(topics=topics))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(topics=by_topic(request.topics, error, _failed, partitions="partition_indexes"))


def _failed(index: int, error: ErrorCode) -> Message:
    return Message(partition_index=index, error_code=error)


def _partition(call: Call, topic: Any, index: int) -> Message:
    log = call.partition(topic.name, None, index).log
    return Message(partition_index=index, active_producers=[_producer(state) for state in log.producers.states()])


def _producer(state: ProducerState) -> Message:
    return Message(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=_NONE if state.transaction_start is None else state.transaction_start,
    )
