"""DescribeGroups (key 15, versions 0-6): describe groups of the classic protocol, with their members.

Kafka: `GroupMetadataManager.describeGroups`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import State
from abeyant.broker.groups.classic.member import Member
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.results import results
from abeyant.broker.requests.common.topics import GROUP_OPERATIONS, NO_OPERATIONS
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"DescribeGroupsRequest": {"include_authorized_operations": False}}
_NOT_FOUND_SINCE = 6  # the version; older ones describe an unknown group as dead


def handle(call: Call) -> None:
    """Respond with a result for each group."""
    call.answer(Message(groups=results(call.request.groups, partial(_group, call), _failed)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(groups=results(request.groups, error, _failed))


def _failed(group_id: str, error: ErrorCode) -> Message:
    return Message(group_id=group_id, error_code=error)


def _group(call: Call, group_id: str) -> Message:
    """Describe the group. Include its members' metadata and assignments only if the group is stable."""
    operations = GROUP_OPERATIONS if call.request.include_authorized_operations else NO_OPERATIONS
    try:
        group = group_shard(call, group_id, nameless=True, expire_overdue=True).group(group_id)
    except ApiError as error:
        if error.code is not ErrorCode.group_id_not_found:
            raise
        dead = Message(group_id=group_id, group_state=State.DEAD.value, error_message=error.message)
        if call.version >= _NOT_FOUND_SINCE:
            dead.error_code = error.code
        else:
            dead.authorized_operations = operations
        return dead
    stable = group.state is State.STABLE
    return Message(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_member(member, group.protocol if stable else None) for member in group.members.values()],
        authorized_operations=operations,
    )


def _member(member: Member, protocol: str | None) -> Message:
    return Message(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=b"" if protocol is None else member.assignment,
    )
