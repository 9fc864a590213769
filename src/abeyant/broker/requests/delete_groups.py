"""DeleteGroups (key 42, versions 0-2): delete groups that have no members, and their offsets.

Kafka: `GroupCoordinatorService.deleteGroups`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Delete the groups. Respond once every shard has deleted its groups."""
    results: dict[str, ErrorCode] = {}
    shards: dict[GroupShard, list[str]] = {}
    for group_id in dict.fromkeys(call.request.groups_names):
        try:
            shard = group_shard(call, group_id, nameless=True, expire_overdue=True)
            shards.setdefault(shard, []).append(group_id)
        except ApiError as error:
            results[group_id] = error.code
    remaining = len(shards)

    def deleted(of_shard: dict[str, ErrorCode]) -> None:
        nonlocal remaining
        remaining -= 1
        results.update(of_shard)
        if not remaining:
            call.answer(_response(results))

    if not shards:
        call.answer(_response(results))
    for shard, group_ids in shards.items():
        shard.delete(group_ids, deleted)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return _response(dict.fromkeys(request.groups_names, error))


def _response(results: dict[str, ErrorCode]) -> Message:
    return Message(results=[Message(group_id=group_id, error_code=error) for group_id, error in results.items()])
