"""ShareGroupHeartbeat (key 76, versions 1-1): join, stay in or leave a share group (KIP-932).

The response has the member's assignment. While the states of the group's partitions are being created, the response
sets a heartbeat interval of at most 20 ms; in Kafka members wait for a whole interval.
Kafka: `GroupMetadataManager.shareGroupHeartbeat`.
"""

from __future__ import annotations

from datetime import timedelta

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.share.protocol import JOINS, LEAVES, ShareHeartbeat, ShareHeartbeatResponse
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard, host_of
from abeyant.broker.requests.common.shares import require_member
from abeyant.broker.requests.consumer_group_heartbeat import topic_partitions
from abeyant.broker.wire.schema import ErrorCode, Message

_SOON = timedelta(milliseconds=20)


def handle(call: Call) -> None:
    """Let the member join, stay or leave, depending on the epoch in its request."""
    request = call.request
    require_member(call)
    heartbeat = ShareHeartbeat(
        request.member_id, request.member_epoch, request.rack_id, request.subscribed_topic_names, call.client_id,
        host_of(call),
    )  # fmt: skip

    def answer(response: ShareHeartbeatResponse) -> None:
        call.answer(_response(call, response))

    try:
        _check(call, heartbeat)
        shard = group_shard(call, request.group_id)
        if heartbeat.epoch == LEAVES:
            shard.share_protocol.leave(shard.share_group(request.group_id), heartbeat, answer)
        else:
            shard.share_heartbeat(request.group_id, heartbeat, answer)
    except ApiError as error:
        answer(ShareHeartbeatResponse(error.code, error.message))


def _check(call: Call, heartbeat: ShareHeartbeat) -> None:
    """Raise ApiError, with Kafka's message, for a request that is invalid whatever the state of its group."""
    rules = (
        (not call.request.group_id, "GroupId can't be empty."),
        (heartbeat.rack_id == "", "RackId can't be empty."),
        (heartbeat.epoch == JOINS and not heartbeat.topics, "SubscribedTopicNames must be set in first request."),
        (heartbeat.epoch < LEAVES, "MemberEpoch is invalid."),
    )
    if wrong := next((message for broken, message in rules if broken), None):
        raise ApiError(ErrorCode.invalid_request, wrong)


def _response(call: Call, response: ShareHeartbeatResponse) -> Message:
    milliseconds = call.broker.cluster.controller.groups.value(call.request.group_id, "share.heartbeat.interval.ms")
    interval = timedelta(milliseconds=milliseconds if response.epoch > 0 else 0)
    return Message(
        error_code=response.error,
        error_message=response.message,
        member_id=response.member_id,
        member_epoch=response.epoch,
        heartbeat_interval=min(interval, _SOON) if response.pending else interval,
        assignment=None
        if response.assignment is None
        else Message(topic_partitions=topic_partitions(response.assignment)),
    )
