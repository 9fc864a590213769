"""ListGroups (key 16, versions 0-5): list the groups that this broker coordinates.

Kafka: `GroupMetadataManager.listGroups`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"ListGroupsRequest": {"states_filter": (), "types_filter": ()}}


def handle(call: Call) -> None:
    """List the groups. Raise ApiError while a shard is loading, as the list would be incomplete."""
    request = call.request
    coordinator = call.broker.group_coordinator
    shards = coordinator.loaded()
    if len(shards) < len(coordinator.shards):
        raise ApiError(ErrorCode.coordinator_load_in_progress)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    for shard in shards:
        for group in shard.all_groups():
            shard.sessions.expire_overdue(group.id)
    groups = [
        Message(
            group_id=group.id, protocol_type=group.protocol_type or "", group_state=group.state.value,
            group_type=group.type,
        )
        for shard in shards
        for group in shard.all_groups()
        if (not states or group.state.value.lower() in states) and (not types or group.type in types)
    ]  # fmt: skip
    call.answer(Message(groups=groups))
