"""ShareGroupDescribe (key 77, versions 1-1): describe share groups, with their members' assignments.

Kafka: `GroupMetadataManager.shareGroupDescribe`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.groups.share.group import ShareMember
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.features import require_shares
from abeyant.broker.requests.common.results import results
from abeyant.broker.requests.common.topics import GROUP_OPERATIONS, NO_OPERATIONS
from abeyant.broker.requests.consumer_group_describe import check_topics, describe_assignment
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Respond with a result for each group."""
    require_shares(call)
    call.answer(Message(groups=results(call.request.group_ids, partial(_group, call), _failed)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(groups=results(request.group_ids, error, _failed))


def _failed(group_id: str, error: ErrorCode) -> Message:
    return Message(group_id=group_id, error_code=error)


def _group(call: Call, group_id: str) -> Message:
    group = group_shard(call, group_id, expire_overdue=True).share_group(group_id)
    members = [_member(call, member) for member in group.members.values()]
    check_topics(call, (member.assignment for member in members))
    return Message(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name="simple",
        members=members,
        authorized_operations=GROUP_OPERATIONS if call.request.include_authorized_operations else NO_OPERATIONS,
    )


def _member(call: Call, member: ShareMember) -> Message:
    return Message(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        assignment=describe_assignment(call, member.assigned),
    )
