"""DescribeGroups (key 15, versions 0-6): describe groups of the classic protocol, with their members.

Kafka: `GroupMetadataManager.describeGroups`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import Member
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.groups import shard_of
from abeyant.broker.requests.common.topics import GROUP_OPERATIONS, NO_OPERATIONS
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"DescribeGroupsRequest": {"include_authorized_operations": False}}
_NOT_FOUND_SINCE = 6  # the version; before, a group that is not there is told to be dead


def handle(call: Call) -> None:
    """Answer with a result for each resource."""
    call.answer(Message(groups=[_group(call, group_id) for group_id in call.request.groups]))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(groups=[_failed(group_id, error) for group_id in request.groups])


def _group(call: Call, group_id: str) -> Message:
    try:
        group = shard_of(call, group_id, nameless=True).group(group_id)
    except ApiError as error:
        if error.code is not ErrorCode.group_id_not_found:
            return _failed(group_id, error.code)
        found = _failed(group_id, error.code if call.version >= _NOT_FOUND_SINCE else ErrorCode.none)
        found.group_state = State.DEAD.value
        found.error_message = error.message
    else:
        found = _described(group)
    if call.request.include_authorized_operations and found.error_code is ErrorCode.none:
        found.authorized_operations = GROUP_OPERATIONS
    return found


def _failed(group_id: str, error: ErrorCode) -> Message:
    return Message(
        error_code=error, group_id=group_id, group_state="", protocol_type="", protocol_data="",
        members=(), authorized_operations=NO_OPERATIONS,
    )  # fmt: skip


def _described(group: ClassicGroup) -> Message:
    """Return the group; its members' metadata and assignments only while it is stable."""
    found = _failed(group.id, ErrorCode.none)
    stable = group.state is State.STABLE
    found.group_state = group.state.value
    found.protocol_type = group.protocol_type or ""
    found.protocol_data = (group.protocol or "") if stable else ""
    found.members = [_member(member, group.protocol if stable else None) for member in group.members.values()]
    return found


def _member(member: Member, protocol: str | None) -> Message:
    return Message(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=b"" if protocol is None else member.assignment,
    )
