"""From a group's id to what this broker knows of it, and times as its protocols have them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.shard import GroupShard
    from abeyant.broker.requests.common.call import Call

_MILLISECOND = timedelta(milliseconds=1)
NO_OPERATIONS = -(1 << 31)  # nobody asked which operations are allowed
GROUP_OPERATIONS = 0b110101001000  # all that a group has, for nobody is refused any


def shard_of(call: Call, group_id: str, *, nameless: bool = False) -> GroupShard:
    """What coordinates a group here. Raises ApiError: INVALID_GROUP_ID, or the coordinator's.

    `nameless`: the group without a name will do, as it always did where offsets are committed.
    """
    if not group_id and not nameless:
        raise ApiError(ErrorCode.invalid_group_id)
    return call.broker.group_coordinator.shard(group_id)


def host_of(call: Call) -> str:
    """A client's address as Kafka shows it."""
    return f"/{call.connection.peer.rpartition(':')[0]}"


def milliseconds(time: timedelta | None) -> int:
    """A request's time; -1 for none."""
    return -1 if time is None else time // _MILLISECOND
