"""AddPartitionsToTxn (key 24, versions 0-5): add partitions to a transaction, or verify that they are part of it.

Up to version 3, clients send one transaction; from version 4 on, brokers send several (KIP-890).
Kafka: `KafkaApis.handleAddPartitionsToTxnRequest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import error_for_version, transaction_shard
from abeyant.broker.transactions.transaction import BUMPS_SINCE, Key, Producer
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"AddPartitionsToTxnTransaction": {"verify_only": False}}
_KNOWS_FENCED_SINCE = 2
_BATCHED_SINCE = 4
_Errors = Mapping[Key, ErrorCode]


def handle(call: Call) -> None:
    """Add or verify the partitions. Respond when the partitions of all transactions are added or verified."""
    request = call.request
    if call.version < _BATCHED_SINCE:
        one = _single_transaction(request)
        _add_or_verify(call, one, lambda errors: call.answer(_single_response(one, errors)))
        return
    results: list[Message] = []

    def finished(transaction: Any, errors: _Errors) -> None:
        topics = _topics(transaction, errors)
        results.append(Message(transactional_id=transaction.transactional_id, topic_results=topics))
        if len(results) == len(request.transactions):
            call.answer(Message(results_by_transaction=results))

    for transaction in request.transactions:
        _add_or_verify(call, transaction, lambda errors, transaction=transaction: finished(transaction, errors))  # type: ignore[misc]
    if not request.transactions:
        call.answer(Message())


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    if hasattr(request, "transactions"):
        return Message(error_code=error)
    one = _single_transaction(request)
    return _single_response(one, dict.fromkeys(_keys(one), error))


def _single_transaction(request: Any) -> Message:
    """Return the only transaction of a request before version 4, with the fields of newer versions."""
    return Message(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        verify_only=False,
        topics=request.v3_and_below_topics,
    )


def _keys(transaction: Any) -> list[Key]:
    return [(topic.name, index) for topic in transaction.topics for index in topic.partitions]


def _add_or_verify(call: Call, transaction: Any, then: Callable[[_Errors], object]) -> None:
    keys = _keys(transaction)
    topics = call.broker.cluster.controller.topics
    missing = {key for key in keys if key[0] not in topics or not 0 <= key[1] < len(topics[key[0]].partitions)}
    if missing:
        unknown, others = ErrorCode.unknown_topic_or_partition, ErrorCode.operation_not_attempted
        then({key: unknown if key in missing else others for key in keys})
        return

    def answer_all(error: ErrorCode) -> None:
        then(dict.fromkeys(keys, error_for_version(call, error, _KNOWS_FENCED_SINCE)))

    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    try:
        shard = transaction_shard(call, transaction.transactional_id)
        if transaction.verify_only:
            then(shard.verify(transaction.transactional_id, producer, keys))
            return
    except ApiError as error:
        answer_all(error.code)
        return
    version = BUMPS_SINCE if call.version >= _BATCHED_SINCE else 0
    shard.add(transaction.transactional_id, producer, keys, version, answer_all)


def _topics(transaction: Any, errors: _Errors) -> list[Message]:
    def partition(name: str, index: int) -> Message:
        return Message(partition_index=index, partition_error_code=errors[name, index])

    return [
        Message(name=topic.name, results_by_partition=[partition(topic.name, index) for index in topic.partitions])
        for topic in transaction.topics
    ]


def _single_response(transaction: Any, errors: _Errors) -> Message:
    return Message(results_by_topic_v3_and_below=_topics(transaction, errors))
