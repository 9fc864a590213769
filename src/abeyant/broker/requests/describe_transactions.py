"""DescribeTransactions (key 65, versions 0-0): describe transactional ids.

Kafka: `TransactionCoordinator.handleDescribeTransactions`.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import transaction_shard
from abeyant.broker.requests.common.results import results
from abeyant.broker.transactions.transaction import State
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Respond with a result for each transactional id."""
    states = results(call.request.transactional_ids, partial(_describe, call), _failed)
    call.answer(Message(transaction_states=states))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(transaction_states=results(request.transactional_ids, error, _failed))


def _failed(transactional_id: str, error: ErrorCode) -> Message:
    return Message(transactional_id=transactional_id, error_code=error)


def _describe(call: Call, transactional_id: str) -> Message:
    shard = transaction_shard(call, transactional_id)
    transaction = shard.transactions.get(transactional_id)
    if transaction is None or transaction.now.state is State.DEAD:
        raise ApiError(ErrorCode.transactional_id_not_found)
    now = transaction.now
    topics = defaultdict(list)
    for topic, index in sorted(shard.partitions_of(transaction)):
        topics[topic].append(index)
    return Message(
        transactional_id=transactional_id,
        transaction_state=now.state.shown,
        transaction_timeout=timedelta(milliseconds=now.timeout_ms),
        transaction_start_time=now.started_ms,
        producer_id=now.producer_id,
        producer_epoch=now.epoch,
        topics=[Message(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
