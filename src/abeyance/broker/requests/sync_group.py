"""SyncGroup: what does a member have? Answered when the leader has said it, and the log has it."""

from __future__ import annotations

from typing import Any

from abeyance.broker.errors import ApiError
from abeyance.broker.groups.member import Synced
from abeyance.broker.requests.call import Call
from abeyance.broker.requests.groups import shard_of
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "SyncGroupRequest": {"group_instance_id": None, "protocol_type": None, "protocol_name": None},
}
_PROTOCOL_SINCE = 5  # the version from which on they have to be told


def handle(call: Call) -> None:
    """Ask, and as the leader say."""
    request = call.request
    try:
        if call.version >= _PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        shard = shard_of(call, request.group_id)
        group = shard.groups.get(request.group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id)
    except ApiError as error:
        call.answer(refused(request, error.code))
        return
    shard.protocol.sync(
        group,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        (request.protocol_type, request.protocol_name),
        {given.member_id: given.assignment for given in request.assignments},
        lambda synced: call.answer(_response(synced)),
    )


def refused(_: Any, error: ErrorCode) -> Message:
    """The error."""
    return _response(Synced(error))


def _response(synced: Synced) -> Message:
    return Message(
        throttle_time=NO_TIME, error_code=synced.error, protocol_type=synced.protocol_type,
        protocol_name=synced.protocol, assignment=synced.assignment,
    )  # fmt: skip
