"""Helpers of the group and transaction APIs: shards, errors, addresses and times."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.shard import GroupShard
    from abeyant.broker.requests.common.call import Call
    from abeyant.broker.transactions.shard import TransactionShard

_MILLISECOND = timedelta(milliseconds=1)


def group_shard(call: Call, group_id: str, *, nameless: bool = False, expire_overdue: bool = False) -> GroupShard:
    """Return the shard of a group. Raises ApiError: INVALID_GROUP_ID, or an error of the coordinator.

    With `nameless` the empty group id is allowed, as for committing offsets. With `expire_overdue`, first remove
    members whose session has expired but whose timer has not fired yet: a client may have waited exactly the session
    time-out before it describes or deletes the group.
    """
    if not group_id and not nameless:
        raise ApiError(ErrorCode.invalid_group_id)
    shard = call.broker.group_coordinator.shard(group_id)
    if expire_overdue:
        shard.sessions.expire_overdue(group_id)
    return shard


def transaction_shard(call: Call, transactional_id: str) -> TransactionShard:
    """Return a transactional id's shard. Raises ApiError: INVALID_REQUEST if empty, or an error of the coordinator."""
    if not transactional_id:
        raise ApiError(ErrorCode.invalid_request)
    return call.broker.transaction_coordinator.shard(transactional_id)


def error_for_version(call: Call, error: ErrorCode, since: int) -> ErrorCode:
    """Return `error`; for clients before version `since`, replace PRODUCER_FENCED by INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.producer_fenced and call.version < since:
        return ErrorCode.invalid_producer_epoch
    return error


def host_of(call: Call) -> str:
    """Return the client's address as Kafka writes it, with a slash: "/127.0.0.1"."""
    return f"/{call.connection.peer.rpartition(':')[0]}"


def milliseconds(time: timedelta | None) -> int:
    """Convert a request's duration to milliseconds, and None to -1."""
    return -1 if time is None else time // _MILLISECOND
