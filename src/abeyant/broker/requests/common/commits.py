"""Handle OffsetCommit and TxnOffsetCommit: check each offset, write the valid ones, and build the response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

_KNOWS_STALE_SINCE = 9  # the version of OffsetCommit
_NOT_FOUND_SINCE = 9


class Commit:
    """The offsets that one request commits, each with its result."""

    def __init__(self, call: Call, names: list[str | None], unknown: ErrorCode) -> None:
        """`names` are the names of the request's topics; None for an unknown id, which gets the error `unknown`."""
        self._call = call
        known = call.broker.cluster.controller.topics
        # For each partition: the topic's name, its part of the request, and its result, which may have an error.
        self._rows: list[tuple[str, Any, Message]] = []
        topics = []
        for topic, name in zip(call.request.topics, names, strict=True):
            partitions = []
            for one in topic.partitions:
                missing = name not in known or not 0 <= one.partition_index < len(known[name].partitions)
                error = unknown if name is None else ErrorCode.unknown_topic_or_partition if missing else ErrorCode.none
                partitions.append(Message(partition_index=one.partition_index, error_code=error))
                self._rows.append((name or "", one, partitions[-1]))
            topics.append(Message(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        self._response = Message(topics=topics)

    @property
    def all_failed(self) -> bool:
        """Return whether no offset can be committed."""
        return all(result.error_code is not ErrorCode.none for _, _, result in self._rows)

    def answer(self, error: ErrorCode) -> None:
        """Respond. Offsets without an error of their own get `error`."""
        for _, _, result in self._rows:
            if result.error_code is ErrorCode.none:
                result.error_code = error
        self._call.answer(self._response)

    def require_allowed(self, shard: GroupShard, generation: int, *, transactional: bool) -> None:
        """Raise ApiError unless the client may commit. Create the group for non-members."""
        request = self._call.request
        member_id = request.member_id
        consumers, streams = shard.consumers.get(request.group_id), shard.streams.get(request.group_id)
        knows_stale = self._call.version >= _KNOWS_STALE_SINCE
        valid = [(name, one.partition_index) for name, one, result in self._rows if result.error_code is ErrorCode.none]
        if consumers is not None:
            topics = self._call.broker.cluster.controller.topics
            partitions = [(topics[name].id, index) for name, index in valid]
            consumers.require_may_commit(
                member_id, generation, partitions, transactional=transactional, knows_stale=knows_stale
            )
            return
        if streams is not None:
            streams.require_may_commit(
                member_id, generation, valid, transactional=transactional, knows_stale=knows_stale
            )
            return
        if request.group_id not in shard.groups and generation >= 0:
            not_found = not transactional and self._call.version >= _NOT_FOUND_SINCE
            raise ApiError(ErrorCode.group_id_not_found if not_found else ErrorCode.illegal_generation)
        group = shard.group_or_new(request.group_id)
        instance_id = request.group_instance_id
        shard.classic_protocol.require_may_commit(
            group, member_id, instance_id, generation, transactional=transactional
        )
        if not transactional:
            shard.classic_protocol.keep_alive(group, member_id)

    def write(
        self,
        shard: GroupShard,
        then: Callable[[ErrorCode], object],
        *,
        retention: int = -1,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Write the valid offsets, in the transaction of `producer` if given. `retention` is in ms, -1 for none."""
        now = self._call.broker.now_ms()
        expires = None if retention < 0 else now + retention
        offsets: dict[OffsetKey, Offset] = {}
        for name, one, result in self._rows:
            if result.error_code is not ErrorCode.none:
                continue
            if not shard.metadata_fits(one.committed_metadata):
                result.error_code = ErrorCode.offset_metadata_too_large
                continue
            offsets[OffsetKey(self._call.request.group_id, name, one.partition_index)] = Offset(
                one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "", now, expires
            )
        if offsets:
            shard.commit(offsets, then, client_id=self._call.client_id, producer=producer)
        else:
            then(ErrorCode.none)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    topics = [
        Message(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[Message(partition_index=one.partition_index, error_code=error) for one in topic.partitions],
        )
        for topic in request.topics
    ]
    return Message(topics=topics)
