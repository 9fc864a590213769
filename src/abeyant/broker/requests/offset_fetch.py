"""OffsetFetch (key 9, versions 1-10): read groups' committed offsets, as far as every in-sync replica has them.

Kafka: `KafkaApis.handleOffsetFetchRequest`, `OffsetMetadataManager.fetchOffsets`.
Share groups have no committed offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from abeyant.broker.coordinator.shard import coordinator_error
from abeyant.broker.delayed.produce import PendingAck, wait_for_acks
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "OffsetFetchRequest": {"groups": None, "require_stable": False, "member_id": None, "member_epoch": -1},
    "OffsetFetchRequestGroup": {"member_id": None, "member_epoch": -1},
    "OffsetFetchRequestTopic": {"topic_id": None},
    "OffsetFetchRequestTopics": {"name": None, "topic_id": None},
}
_NONE = Offset(-1, -1, "", 0)
_IDS_SINCE = 10  # the version
_GROUP_ERROR_SINCE = 2


def handle(call: Call) -> None:
    """Respond with the offsets of each group; before version 8 a request is for one group.

    With `require_stable`, offsets are read up to the log end, and the response waits until every in-sync replica has
    them. Kafka does the same, by treating such a read as a write.
    """
    request = call.request
    results = [_group(call, query) for query in ([request] if request.groups is None else request.groups)]
    waiting = [ack for _, _, ack in results if ack is not None]

    def answer() -> None:
        rows = [
            message
            if ack is None or ack.error is ErrorCode.none
            else _failed(query, coordinator_error(ack.error), request)
            for query, message, ack in results
        ]
        if request.groups is None:
            call.answer(rows[0])
        else:
            call.answer(Message(groups=rows))

    timeout = call.broker.cluster.settings["offsets.commit.timeout.ms"] / 1000
    wait_for_acks(call.broker, waiting, timeout, call.client_id, call.since, answer)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    if request.groups is not None:
        return Message(groups=[_failed(query, error, request) for query in request.groups])
    return _failed(request, error, request)


def _group(call: Call, query: Any) -> tuple[Any, Message, PendingAck | None]:
    """Return `query`, the response for its group, and the acknowledgement to wait for, or None."""
    try:
        shard = group_shard(call, query.group_id, nameless=True)
        _require_member(shard, query)
    except ApiError as error:
        return query, _failed(query, error.code, call.request), None
    ack = None
    replicated = shard.replicated
    if call.request.require_stable and replicated < shard.partition.log.end_offset:
        replicated = shard.partition.log.end_offset
        ack = PendingAck(shard.partition, replicated)

    def committed(name: str, index: int) -> Message:
        key = OffsetKey(query.group_id, name, index)
        if call.request.require_stable and shard.offsets.is_unstable(key):
            return _partition(index, _NONE, ErrorCode.unstable_offset_commit)
        return _partition(index, shard.offsets.committed(key, replicated) or _NONE, ErrorCode.none)

    if query.topics is None:
        keys = [key for key, _ in shard.offsets.all_committed(query.group_id, replicated)]
        topics = _all_topics(call, keys, committed)
    else:
        topics = [_topic(call, topic, committed) for topic in query.topics]
    return query, Message(group_id=query.group_id, topics=topics), ack


def _topic(call: Call, topic: Any, committed: Callable[[str, int], Message]) -> Message:
    """Return the row of a requested topic, with its offsets."""
    name = topic.name
    if call.version >= _IDS_SINCE:
        existing = call.broker.cluster.controller.by_id.get(topic.topic_id)
        if existing is None:
            error = ErrorCode.unknown_topic_id
            partitions = [_partition(index, _NONE, error) for index in topic.partition_indexes]
            return Message(topic_id=topic.topic_id, partitions=partitions)
        name = existing.name
    partitions = [committed(name, index) for index in topic.partition_indexes]
    return Message(name=name, topic_id=topic.topic_id, partitions=partitions)


def _all_topics(call: Call, keys: Iterable[tuple[str, int]], committed: Callable[[str, int], Message]) -> list[Message]:
    """Return a row for each topic with committed offsets; in versions with topic ids, only for existing topics."""
    by_topic: dict[str, list[Message]] = {}
    for name, index in keys:
        by_topic.setdefault(name, []).append(committed(name, index))
    existing = call.broker.cluster.controller.topics
    return [
        Message(name=name, topic_id=existing[name].id if name in existing else None, partitions=partitions)
        for name, partitions in by_topic.items()
        if name in existing or call.version < _IDS_SINCE
    ]


def _require_member(shard: GroupShard, query: Any) -> None:
    """Raise ApiError if the query names a member that its consumer or streams group does not have at this epoch."""
    if query.member_id is None and query.member_epoch < 0:
        return
    consumers, streams = shard.consumers.get(query.group_id), shard.streams.get(query.group_id)
    if consumers is not None:
        consumers.require_epoch(consumers.require(query.member_id or ""), query.member_epoch)
    elif streams is not None:
        streams.require_epoch(streams.require(query.member_id or ""), query.member_epoch)


def _failed(query: Any, error: ErrorCode, request: Any) -> Message:
    """Return a group's response with this error; in versions without a group error, set it on each partition."""
    topics = []
    if request.__version__ < _GROUP_ERROR_SINCE:
        topics = [
            Message(name=topic.name, partitions=[_partition(index, _NONE, error) for index in topic.partition_indexes])
            for topic in query.topics
        ]
    return Message(group_id=query.group_id, error_code=error, topics=topics)


def _partition(index: int, offset: Offset, error: ErrorCode) -> Message:
    return Message(
        partition_index=index, committed_offset=offset.offset, committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata, error_code=error,
    )  # fmt: skip
