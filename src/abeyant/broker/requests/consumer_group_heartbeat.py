"""ConsumerGroupHeartbeat (key 68, versions 0-1): join, stay in or leave a group of the consumer protocol.

The response has the member's assignment (KIP-848).
Kafka: `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial
from itertools import groupby

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.assignors import ASSIGNORS, Assignment
from abeyant.broker.groups.consumer.group import LEAVES, LEAVES_FOR_A_WHILE
from abeyant.broker.groups.consumer.protocol import HeartbeatRequest, HeartbeatResponse
from abeyant.broker.requests.common.allowed import may_describe
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard, host_of, milliseconds
from abeyant.broker.requests.common.features import require_consumer_groups
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"ConsumerGroupHeartbeatRequest": {"subscribed_topic_regex": None}}
_JOINS = 0
_OWN_ID_SINCE = 1  # the version


def handle(call: Call) -> None:
    """Let the member join, stay or leave, depending on the epoch in its request."""
    require_consumer_groups(call)
    request = call.request
    heartbeat = _heartbeat(call)

    def answer(response: HeartbeatResponse) -> None:
        call.answer(_response(call, response))

    try:
        _check(call, heartbeat)
        shard = group_shard(call, request.group_id)
        if heartbeat.epoch in (LEAVES, LEAVES_FOR_A_WHILE):
            shard.consumer_protocol.leave(shard.consumer_group(request.group_id), heartbeat, answer)
        elif heartbeat.epoch == _JOINS:
            shard.join(heartbeat, request.group_id, answer)
        else:
            if shard.find(request.group_id) is None:
                raise ApiError(ErrorCode.group_id_not_found, f"Consumer group {request.group_id} not found.")
            shard.consumer_protocol.heartbeat(shard.consumer_group(request.group_id), heartbeat, answer)
    except ApiError as error:
        answer(HeartbeatResponse(error.code, error.message))


def _check(call: Call, heartbeat: HeartbeatRequest) -> None:
    """Raise ApiError, with Kafka's message, for a request that is invalid whatever the state of its group."""
    joins, epoch = heartbeat.epoch == _JOINS, heartbeat.epoch
    no_subscription = heartbeat.topics is None and heartbeat.regex is None
    rules = (
        (not call.request.group_id, "GroupId can't be empty."),
        (heartbeat.instance_id == "", "InstanceId can't be empty."),
        (heartbeat.rack_id == "", "RackId can't be empty."),
        (not heartbeat.member_id, "MemberId can't be empty."),
        (joins and heartbeat.rebalance_timeout < 0, "RebalanceTimeoutMs must be provided in first request."),
        (joins and heartbeat.owned != frozenset(), "TopicPartitions must be empty when (re-)joining."),
        (
            joins and no_subscription,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (epoch == LEAVES_FOR_A_WHILE and heartbeat.instance_id is None, "InstanceId can't be null."),
        (epoch < LEAVES_FOR_A_WHILE, "MemberEpoch is invalid."),
    )
    if wrong := next((message for broken, message in rules if broken), None):
        raise ApiError(ErrorCode.invalid_request, wrong)
    if heartbeat.assignor is not None and heartbeat.assignor not in ASSIGNORS:
        raise ApiError(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {heartbeat.assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}.",
        )


def _heartbeat(call: Call) -> HeartbeatRequest:
    request = call.request
    owned = request.topic_partitions
    member_id = request.member_id
    if not member_id and call.version < _OWN_ID_SINCE and request.member_epoch == _JOINS:
        member_id = str(uuid.uuid4())
    return HeartbeatRequest(
        member_id=member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout=milliseconds(request.rebalance_timeout),
        topics=request.subscribed_topic_names,
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else frozenset((row.topic_id, index) for row in owned for index in row.partitions),
        client_id=call.client_id,
        client_host=host_of(call),
        may_describe=partial(may_describe, call),
    )


def _response(call: Call, response: HeartbeatResponse) -> Message:
    interval = call.broker.cluster.controller.groups.value(call.request.group_id, "consumer.heartbeat.interval.ms")
    return Message(
        error_code=response.error,
        error_message=response.message,
        member_id=response.member_id,
        member_epoch=response.epoch,
        heartbeat_interval=timedelta(milliseconds=interval) if response.epoch > 0 else NO_TIME,
        assignment=None
        if response.assignment is None
        else Message(topic_partitions=topic_partitions(response.assignment)),
    )


def topic_partitions(assignment: Assignment) -> list[Message]:
    """Return an assignment's partitions grouped by topic id."""
    return [
        Message(topic_id=topic, partitions=[index for _, index in rows])
        for topic, rows in groupby(sorted(assignment), lambda partition: partition[0])
    ]
