"""What the APIs of transactions share."""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.transactions.shard import TransactionShard
from abeyant.broker.wire.schema import ErrorCode


def shard_of(call: Call, transactional_id: str) -> TransactionShard:
    """Return the shard of a transactional id. Raises ApiError where another broker coordinates it."""
    if not transactional_id:
        raise ApiError(ErrorCode.invalid_request)
    shard: TransactionShard = call.broker.transaction_coordinator.shard(transactional_id)
    return shard


def error_for_version(call: Call, error: ErrorCode, since: int) -> ErrorCode:
    """Return the error for this client's version: PRODUCER_FENCED is new in version `since` of the API."""
    if error is ErrorCode.producer_fenced and call.version < since:
        return ErrorCode.invalid_producer_epoch
    return error
