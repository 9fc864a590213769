"""Verify a transaction with its coordinator before its first record is appended to a partition (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from abeyant.broker.coordinator.topics import TRANSACTIONS, partition_for
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker

Key = tuple[str, int]  # topic and partition
Then = Callable[[dict[Key, ErrorCode]], object]


class VerificationRequest(NamedTuple):
    """A request to verify that partitions are part of a producer's transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    keys: Sequence[Key]
    adds: bool
    """Whether to add partitions that the transaction lacks, as clients of transaction.version 2 expect."""
    knows_abortable: bool
    """Whether the client knows the error TRANSACTION_ABORTABLE."""


def verify(broker: Broker, request: VerificationRequest, then: Then) -> None:
    """Send the request to the coordinator. Call `then` once with NONE or an error for each partition.

    CONCURRENT_TRANSACTIONS is common right after a commit. If the request adds partitions, it is retried for
    `add.partitions.to.txn.retry.backoff.max.ms`, as clients leave this retry to the broker.
    """
    settings = broker.cluster.settings
    deadline = broker.now() + settings["add.partitions.to.txn.retry.backoff.max.ms"] / 1000
    backoff = settings["add.partitions.to.txn.retry.backoff.ms"] / 1000

    def retry_or_finish(errors: dict[Key, ErrorCode]) -> None:
        if request.adds and ErrorCode.concurrent_transactions in errors.values() and broker.now() < deadline:
            broker.timer.call_later(backoff, _send, broker, request, retry_or_finish)
        else:
            then(errors)

    _send(broker, request, retry_or_finish)


def _send(broker: Broker, request: VerificationRequest, then: Then) -> None:
    topic = broker.cluster.controller.topics.get(TRANSACTIONS.name)
    states = [] if topic is None else topic.partitions
    leader = states[partition_for(request.transactional_id, len(states))].leader if states else -1
    if leader < 0:
        then(dict.fromkeys(request.keys, ErrorCode.coordinator_not_available))
        return
    transaction = Message(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        verify_only=not request.adds,
        topics=[
            Message(name=name, partitions=[index for _, index in keys])
            for name, keys in groupby(sorted(request.keys), key=lambda key: key[0])
        ],
    )
    client_id = f"broker-{broker.id}-add-partitions-to-txn"
    broker.ask(
        leader, "AddPartitionsToTxn", Message(transactions=[transaction]), request.keys, client_id,
        lambda response: then(_errors(request, response)),
    )  # fmt: skip


def _errors(request: VerificationRequest, response: Any) -> dict[Key, ErrorCode]:
    if response is None:
        return dict.fromkeys(request.keys, ErrorCode.network_exception)
    if response.error_code is not ErrorCode.none:
        return dict.fromkeys(request.keys, response.error_code)
    return {
        (topic.name, result.partition_index): _client_error(request, result.partition_error_code)
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for result in topic.results_by_partition
    }


def _client_error(request: VerificationRequest, error: ErrorCode) -> ErrorCode:
    """Translate the coordinator's error into the error for the producer."""
    if error is ErrorCode.producer_fenced:
        return ErrorCode.invalid_producer_epoch
    if error is ErrorCode.transaction_abortable and not request.knows_abortable:
        return ErrorCode.invalid_txn_state
    return error
