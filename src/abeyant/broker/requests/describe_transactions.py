"""DescribeTransactions (key 65, versions 0-0): describe transactional ids.

Kafka: `TransactionCoordinator.handleDescribeTransactions`.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.transactional import shard_of
from abeyant.broker.transactions.transaction import State
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def handle(call: Call) -> None:
    """Answer with a result for each resource."""
    found = [_described(call, transactional_id) for transactional_id in call.request.transactional_ids]
    call.answer(Message(transaction_states=found))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    found = [_failed(transactional_id, error) for transactional_id in request.transactional_ids]
    return Message(transaction_states=found)


def _described(call: Call, transactional_id: str) -> Message:
    try:
        shard = shard_of(call, transactional_id)
    except ApiError as error:
        return _failed(transactional_id, error.code)
    transaction = shard.transactions.get(transactional_id)
    if transaction is None or transaction.now.state is State.DEAD:
        return _failed(transactional_id, ErrorCode.transactional_id_not_found)
    now = transaction.now
    topics = defaultdict(list)
    for topic, index in sorted(shard.partitions_of(transaction)):
        topics[topic].append(index)
    found = _failed(transactional_id, ErrorCode.none)
    found.transaction_state = now.state.shown
    found.transaction_timeout = timedelta(milliseconds=now.timeout_ms)
    found.transaction_start_time = _time(now.started_ms)
    found.producer_id = now.producer_id
    found.producer_epoch = now.epoch
    found.topics = [Message(topic=topic, partitions=indexes) for topic, indexes in topics.items()]
    return found


def _failed(transactional_id: str, error: ErrorCode) -> Message:
    return Message(
        error_code=error, transactional_id=transactional_id, transaction_state="", transaction_timeout=NO_TIME,
        transaction_start_time=_time(0), producer_id=0, producer_epoch=0, topics=[],
    )  # fmt: skip


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
