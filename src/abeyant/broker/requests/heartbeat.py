"""Heartbeat (key 12, versions 0-4): keep a classic member's session alive, or make the member rejoin.

Kafka: `GroupMetadataManager.classicGroupHeartbeat`.
"""

from __future__ import annotations

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.wire.schema import Message

FILL: dict[str, dict[str, object]] = {"HeartbeatRequest": {"group_instance_id": None}}


def handle(call: Call) -> None:
    """Restart the member's session time-out. Raise ApiError if the member has to rejoin, or is unknown."""
    request = call.request
    shard = group_shard(call, request.group_id)
    member_id, instance_id, generation = request.member_id, request.group_instance_id, request.generation_id
    if request.group_id in shard.consumers:
        group = shard.consumers[request.group_id]
        shard.classic_members.heartbeat(group, (member_id, instance_id), generation)
    else:
        shard.classic_protocol.heartbeat(shard.group_of_member(request.group_id), member_id, instance_id, generation)
    call.answer(Message())
