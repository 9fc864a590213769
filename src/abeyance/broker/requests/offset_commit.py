"""OffsetCommit: how far a group is; answered once every in-sync replica has it."""

from __future__ import annotations

from typing import Any

from abeyance.broker.errors import ApiError
from abeyance.broker.groups.records import Offset, OffsetKey
from abeyance.broker.groups.shard import GroupShard
from abeyance.broker.requests.call import Call
from abeyance.broker.requests.groups import milliseconds, shard_of
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "OffsetCommitRequest": {"group_instance_id": None, "retention_time": None},
    "OffsetCommitRequestTopic": {"name": None, "topic_id": None},
    "OffsetCommitRequestPartition": {"committed_leader_epoch": -1},
}
Errors = list[list[ErrorCode]]
"""Of each topic of a request, of each of its partitions."""

_IDS_SINCE = 10  # the version
_NOT_FOUND_SINCE = 9


def handle(call: Call) -> None:
    """Commit what can be."""
    request = call.request
    names = [_name(call, topic) for topic in request.topics]
    errors = [
        [missing(call, name, asked.partition_index) for asked in topic.partitions]
        for topic, name in zip(request.topics, names, strict=True)
    ]
    if request.topics and all(error is not ErrorCode.none for topic in errors for error in topic):
        call.answer(response(request, errors))
        return
    try:
        shard = shard_of(call, request.group_id, nameless=True)
        _require(call, shard)
    except ApiError as error:
        call.answer(response(request, instead(errors, error.code)))
        return
    retention = milliseconds(request.retention_time)
    now = call.broker.now_ms()
    offsets: dict[OffsetKey, Offset] = {}
    for topic, name, of_topic in zip(request.topics, names, errors, strict=True):
        for place, asked in enumerate(topic.partitions):
            if of_topic[place] is not ErrorCode.none:
                continue
            if not shard.metadata_fits(asked.committed_metadata):
                of_topic[place] = ErrorCode.offset_metadata_too_large
                continue
            offsets[OffsetKey(request.group_id, name or "", asked.partition_index)] = Offset(
                asked.committed_offset, asked.committed_leader_epoch, asked.committed_metadata or "", now,
                None if retention < 0 else now + retention,
            )  # fmt: skip
    if offsets:
        shard.commit(
            offsets,
            lambda error: call.answer(response(request, instead(errors, error))),
            client_id=call.client_id,
        )
    else:
        call.answer(response(request, errors))


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return response(request, [[error] * len(topic.partitions) for topic in request.topics])


def _require(call: Call, shard: GroupShard) -> None:
    """Whether the client may commit; a group that is not there is made for who is no member of any."""
    request = call.request
    generation = request.generation_id_or_member_epoch
    consumers = shard.consumers.get(request.group_id)
    if consumers is not None:
        if generation >= 0 and call.version < _NOT_FOUND_SINCE:
            consumers.require(request.member_id)
            raise ApiError(ErrorCode.unsupported_version)  # it would not understand what it is told
        consumers.require_may_commit(request.member_id, generation)
        return
    if request.group_id not in shard.groups and generation >= 0:
        since = call.version >= _NOT_FOUND_SINCE
        raise ApiError(ErrorCode.group_id_not_found if since else ErrorCode.illegal_generation)
    group = shard.group_or_new(request.group_id)
    shard.protocol.require_may_commit(
        group, request.member_id, request.group_instance_id, generation, transactional=False
    )
    shard.protocol.alive(group, request.member_id)


def _name(call: Call, topic: Any) -> str | None:
    if call.version < _IDS_SINCE:
        name: str = topic.name
        return name
    found = call.broker.cluster.controller.by_id.get(topic.topic_id)
    return None if found is None else found.name


def missing(call: Call, name: str | None, index: int) -> ErrorCode:
    """The error for a partition that there is not, or NONE."""
    if name is None:
        return ErrorCode.unknown_topic_id
    topic = call.broker.cluster.controller.topics.get(name)
    known = topic is not None and 0 <= index < len(topic.partitions)
    return ErrorCode.none if known else ErrorCode.unknown_topic_or_partition


def instead(errors: Errors, error: ErrorCode) -> Errors:
    """With an error for those that have none of their own."""
    return [[error if known is ErrorCode.none else known for known in topic] for topic in errors]


def response(request: Any, errors: Errors) -> Message:
    """An error for each partition, as the request names them."""
    return Message(
        throttle_time=NO_TIME,
        topics=[
            Message(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    Message(partition_index=asked.partition_index, error_code=error)
                    for asked, error in zip(topic.partitions, of_topic, strict=True)
                ],
            )
            for topic, of_topic in zip(request.topics, errors, strict=True)
        ],
    )
