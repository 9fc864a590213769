"""LeaveGroup (key 13, versions 0-5): remove members from a group, on their own request or an administrator's.

Kafka: `GroupMetadataManager.classicGroupLeave`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"LeaveGroupRequest": {"members": None, "member_id": None}}


def handle(call: Call) -> None:
    """Remove the members in one rebalance."""
    request = call.request
    shard = group_shard(call, request.group_id)
    identities = _members(request)

    def answer(errors: list[ErrorCode]) -> None:
        members = [
            Message(member_id=member_id, group_instance_id=instance_id, error_code=error)
            for (member_id, instance_id), error in zip(identities, errors, strict=True)
        ]
        call.answer(Message(error_code=errors[0] if request.members is None else ErrorCode.none, members=members))

    if request.group_id in shard.consumers:
        shard.classic_members.leave(shard.consumers[request.group_id], identities, answer)
    elif request.group_id in shard.groups:
        shard.classic_protocol.leave(shard.groups[request.group_id], identities, answer)
    else:
        answer([ErrorCode.unknown_member_id] * len(identities))


def _members(request: Any) -> list[tuple[str, str | None]]:
    """Return the member id and instance id of each leaving member. Before version 3, one member leaves by its id."""
    if request.members is None:
        return [(request.member_id, None)]
    return [(member.member_id, member.group_instance_id) for member in request.members]
