"""OffsetFetch (key 9, versions 1-10): read the committed offsets of groups, as far as every in-sync replica has them.

Kafka: `KafkaApis.handleOffsetFetchRequest`, `OffsetMetadataManager.fetchOffsets`.
Not implemented: groups of the streams and share protocols.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from abeyant.broker.coordinator.shard import coordinator_error
from abeyant.broker.delayed.produce import PendingAck, wait_for_acks
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.groups import shard_of
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
    """Answer for each group; before version 8 there is one.

    With `require_stable` the offsets are read up to the log's end, and the response waits until every in-sync replica
    has them: as in Kafka, which treats this as a write.
    """
    request = call.request
    found = [_group(call, query) for query in ([request] if request.groups is None else request.groups)]
    waiting = [acked for _, _, acked in found if acked is not None]

    def answer() -> None:
        rows = [
            message
            if acked is None or acked.error is ErrorCode.none
            else _failed(query, coordinator_error(acked.error), request)
            for query, message, acked in found
        ]
        if request.groups is None:
            call.answer(rows[0])
        else:
            call.answer(Message(groups=rows))

    timeout = call.broker.cluster.settings["offsets.commit.timeout.ms"] / 1000
    wait_for_acks(call.broker, waiting, timeout, call.client_id, call.since, answer)


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    if request.groups is not None:
        return Message(groups=[_failed(query, error, request) for query in request.groups])
    return _failed(request, error, request)


def _group(call: Call, query: Any) -> tuple[Any, Message, PendingAck | None]:
    """Return the request's part, its response, and the write that has to be acknowledged before it is sent."""
    try:
        shard = shard_of(call, query.group_id, nameless=True)
        _require_member(shard, query)
    except ApiError as error:
        return query, _failed(query, error.code, call.request), None
    acked = None
    replicated = shard.replicated
    if call.request.require_stable and replicated < shard.partition.log.end_offset:
        replicated = shard.partition.log.end_offset
        acked = PendingAck(shard.partition, replicated)
    reader = _Reader(call, shard, replicated)
    topics = reader.all_topics(query) if query.topics is None else reader.topics(query)
    return query, Message(group_id=query.group_id, topics=list(topics)), acked


def _require_member(shard: GroupShard, query: Any) -> None:
    """Raise ApiError for a member of a consumer group that is unknown, or at another epoch."""
    consumers = shard.consumers.get(query.group_id)
    if consumers is not None and (query.member_id is not None or query.member_epoch >= 0):
        consumers.require_epoch(consumers.require(query.member_id or ""), query.member_epoch)


def _failed(query: Any, error: ErrorCode, request: Any) -> Message:
    """Return the group's error; in versions without a field for it, the error of each partition."""
    topics = []
    if request.__version__ < _GROUP_ERROR_SINCE:
        topics = [
            Message(name=topic.name, partitions=[_partition(index, _NONE, error) for index in topic.partition_indexes])
            for topic in query.topics
        ]
    return Message(group_id=query.group_id, error_code=error, topics=topics)


class _Reader:
    """Reads offsets as they are once all below `replicated` counts."""

    def __init__(self, call: Call, shard: GroupShard, replicated: int) -> None:
        self._call = call
        self._shard = shard
        self._replicated = replicated

    def topics(self, query: Any) -> Iterable[Message]:
        """Yield the topics of the request."""
        by_id = self._call.broker.cluster.controller.by_id
        for topic in query.topics:
            name = topic.name
            if self._call.version >= _IDS_SINCE:
                known = by_id.get(topic.topic_id)
                if known is None:
                    unknown = ErrorCode.unknown_topic_id
                    partitions = [_partition(index, _NONE, unknown) for index in topic.partition_indexes]
                    yield Message(topic_id=topic.topic_id, partitions=partitions)
                    continue
                name = known.name
            keys = [OffsetKey(query.group_id, name, index) for index in topic.partition_indexes]
            yield Message(name=name, topic_id=topic.topic_id, partitions=[self._committed(key) for key in keys])

    def all_topics(self, query: Any) -> Iterable[Message]:
        """Yield all topics with committed offsets; in versions with ids, only those that exist."""
        by_topic: dict[str, list[Message]] = {}
        for (name, index), _ in self._shard.offsets.of_group(query.group_id, self._replicated):
            by_topic.setdefault(name, []).append(self._committed(OffsetKey(query.group_id, name, index)))
        present = self._call.broker.cluster.controller.topics
        for name, partitions in by_topic.items():
            known = present.get(name)
            if known is not None or self._call.version < _IDS_SINCE:
                yield Message(name=name, topic_id=None if known is None else known.id, partitions=partitions)

    def _committed(self, key: OffsetKey) -> Message:
        if self._call.request.require_stable and self._shard.offsets.is_unstable(key):
            return _partition(key.partition, _NONE, ErrorCode.unstable_offset_commit)
        offset = self._shard.offsets.committed(key, self._replicated)
        return _partition(key.partition, offset or _NONE, ErrorCode.none)


def _partition(index: int, offset: Offset, error: ErrorCode) -> Message:
    return Message(
        partition_index=index, committed_offset=offset.offset, committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata, error_code=error,
    )  # fmt: skip
