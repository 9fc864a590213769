"""OffsetCommit (key 8, versions 2-10): commit a group's offsets, and respond once every in-sync replica has them.

Kafka: `KafkaApis.handleOffsetCommitRequest`, `OffsetMetadataManager.commitOffset`.
Share groups have no committed offsets.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.commits import Commit, error_response
from abeyant.broker.requests.common.coordinators import group_shard, milliseconds
from abeyant.broker.wire.schema import ErrorCode

__all__ = ["FILL", "error_response", "handle"]

FILL: dict[str, dict[str, object]] = {
    "OffsetCommitRequest": {"group_instance_id": None, "retention_time": None},
    "OffsetCommitRequestTopic": {"name": None, "topic_id": None},
    "OffsetCommitRequestPartition": {"committed_leader_epoch": -1},
}
_IDS_SINCE = 10  # the version


def handle(call: Call) -> None:
    """Commit the valid offsets."""
    request = call.request
    commit = Commit(call, [_name(call, topic) for topic in request.topics], ErrorCode.unknown_topic_id)
    if request.topics and commit.all_failed:
        commit.answer(ErrorCode.none)
        return
    try:
        shard = group_shard(call, request.group_id, nameless=True, expire_overdue=not request.member_id)
        commit.require_allowed(shard, request.generation_id_or_member_epoch, transactional=False)
    except ApiError as error:
        commit.answer(error.code)
        return
    commit.write(shard, commit.answer, retention=milliseconds(request.retention_time))


def _name(call: Call, topic: Any) -> str | None:
    if call.version < _IDS_SINCE:
        name: str = topic.name
        return name
    found = call.broker.cluster.controller.by_id.get(topic.topic_id)
    return None if found is None else found.name
