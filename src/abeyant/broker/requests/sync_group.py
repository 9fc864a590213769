"""SyncGroup (key 14, versions 0-5): return the assignment of a member of a classic group.

The response comes once the assignments from the group's leader are in the log.
Kafka: `GroupMetadataManager.classicGroupSync`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.member import SyncResponse
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "SyncGroupRequest": {"group_instance_id": None, "protocol_type": None, "protocol_name": None},
}
_PROTOCOL_SINCE = 5  # the version from which the protocol is required


def handle(call: Call) -> None:
    """Respond with the member's assignment once it is known. The leader's request has all members' assignments."""
    request = call.request

    def answer(synced: SyncResponse) -> None:
        call.answer(
            Message(
                error_code=synced.error, protocol_type=synced.protocol_type, protocol_name=synced.protocol,
                assignment=synced.assignment,
            )
        )  # fmt: skip

    if call.version >= _PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        raise ApiError(ErrorCode.inconsistent_group_protocol)
    shard = group_shard(call, request.group_id)
    identity = request.member_id, request.group_instance_id
    protocols = request.protocol_type, request.protocol_name
    if request.group_id in shard.consumers:
        group = shard.consumers[request.group_id]
        shard.classic_members.sync(group, identity, request.generation_id, protocols, answer)
    else:
        assignments = {one.member_id: one.assignment for one in request.assignments}
        shard.classic_protocol.rebalances.sync(
            shard.group_of_member(request.group_id), *identity, request.generation_id, protocols, assignments, answer
        )
