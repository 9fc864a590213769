"""ConsumerGroupDescribe (key 69, versions 0-1): describe groups of the consumer protocol.

Each member is described with its current and its target assignment.
Kafka: `GroupMetadataManager.consumerGroupDescribe`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.assignors import NOTHING, Assignment
from abeyant.broker.groups.consumer.group import ConsumerGroup, ConsumerMember, preferred_assignor
from abeyant.broker.requests.common.allowed import may_describe
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.features import require_consumer_groups
from abeyant.broker.requests.common.results import results
from abeyant.broker.requests.common.topics import GROUP_OPERATIONS, NO_OPERATIONS
from abeyant.broker.requests.consumer_group_heartbeat import topic_partitions
from abeyant.broker.wire.schema import ErrorCode, Message

_CLASSIC, _CONSUMER = 0, 1  # member types, by protocol


def handle(call: Call) -> None:
    """Respond with a result for each group."""
    require_consumer_groups(call)
    call.answer(Message(groups=results(call.request.group_ids, partial(_group, call), _failed)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(groups=results(request.group_ids, error, _failed))


def _failed(group_id: str, error: ErrorCode) -> Message:
    return Message(group_id=group_id, error_code=error)


def _group(call: Call, group_id: str) -> Message:
    group = group_shard(call, group_id, expire_overdue=True).consumer_group(group_id)
    members = [_member(call, group, member) for member in group.members.values()]
    check_topics(call, (given for member in members for given in (member.assignment, member.target_assignment)))
    return Message(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group.members.values()),
        members=members,
        authorized_operations=GROUP_OPERATIONS if call.request.include_authorized_operations else NO_OPERATIONS,
    )


def _member(call: Call, group: ConsumerGroup, member: ConsumerMember) -> Message:
    return Message(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex or "",
        assignment=describe_assignment(call, member.assigned | member.revoking),
        target_assignment=describe_assignment(call, group.target.get(member.id, NOTHING)),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def describe_assignment(call: Call, assignment: Assignment) -> Message:
    """Return an assignment without deleted topics, whose names are no longer known."""
    topics = call.broker.cluster.controller.by_id
    rows = [row for row in topic_partitions(assignment) if row.topic_id in topics]
    for row in rows:
        row.topic_name = topics[row.topic_id].name
    return Message(topic_partitions=rows)


def check_topics(call: Call, assignments: Iterable[Message]) -> None:
    """Raise ApiError, which refuses the whole group, unless the client may describe all topics of its assignments."""
    names = {row.topic_name for one in assignments for row in one.topic_partitions}
    if not all(may_describe(call, name) for name in names):
        text = "The group has described topic(s) that the client is not authorized to describe."
        raise ApiError(ErrorCode.topic_authorization_failed, text)
