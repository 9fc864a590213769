"""LeaveGroup: members leave, or are put out by whoever administers the group."""

from __future__ import annotations

from typing import Any

from abeyance.broker.errors import ApiError
from abeyance.broker.requests.call import Call
from abeyance.broker.requests.groups import shard_of
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"LeaveGroupRequest": {"members": None, "member_id": None}}


def handle(call: Call) -> None:
    """Leave, all at once: one rebalance for all."""
    request = call.request
    try:
        shard = shard_of(call, request.group_id)
    except ApiError as error:
        call.answer(refused(request, error.code))
        return
    group = shard.groups.get(request.group_id)
    told = []
    for member_id, instance_id in _members(request):
        error_code = ErrorCode.unknown_member_id
        if group is not None:
            try:
                shard.protocol.leave(group, member_id, instance_id)
                error_code = ErrorCode.none
            except ApiError as error:
                error_code = error.code
        told.append(Message(member_id=member_id, group_instance_id=instance_id, error_code=error_code))
    if group is not None and any(one.error_code is ErrorCode.none for one in told):
        shard.protocol.left(group)
    call.answer(_response(told[0].error_code if request.members is None else ErrorCode.none, told))


def refused(_: Any, error: ErrorCode) -> Message:
    """The error."""
    return _response(error, [])


def _members(request: Any) -> list[tuple[str, str | None]]:
    """Who leaves; before version 3 one, who is dynamic."""
    if request.members is None:
        return [(request.member_id, None)]
    return [(member.member_id, member.group_instance_id) for member in request.members]


def _response(error: ErrorCode, members: list[Message]) -> Message:
    return Message(throttle_time=NO_TIME, error_code=error, members=members)
