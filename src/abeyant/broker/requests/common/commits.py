"""What OffsetCommit and TxnOffsetCommit share: check each offset, write the valid ones, and build the response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

Errors = list[list[ErrorCode]]
"""Of each topic of a request, of each of its partitions."""

_KNOWS_STALE_SINCE = 9  # the version of OffsetCommit
_NOT_FOUND_SINCE = 9


class Commit:
    """The offsets of one request. `errors` starts with those of partitions that do not exist."""

    def __init__(self, call: Call, names: list[str | None], unknown: ErrorCode) -> None:
        """Take the topics' names; None for an unknown id, which gets the error `unknown`."""
        self._call = call
        self._names = names
        topics = call.request.topics
        self.errors: Errors = [
            [unknown if name is None else self._missing(name, one.partition_index) for one in topic.partitions]
            for topic, name in zip(topics, names, strict=True)
        ]

    def _missing(self, name: str, index: int) -> ErrorCode:
        topic = self._call.broker.cluster.controller.topics.get(name)
        known = topic is not None and 0 <= index < len(topic.partitions)
        return ErrorCode.none if known else ErrorCode.unknown_topic_or_partition

    @property
    def all_failed(self) -> bool:
        """Return whether no offset can be committed."""
        return all(error is not ErrorCode.none for topic in self.errors for error in topic)

    def error_response(self, error: ErrorCode) -> Message:
        """Return the response, with `error` for offsets without an error of their own."""
        errors = [[error if known is ErrorCode.none else known for known in topic] for topic in self.errors]
        return response(self._call.request, errors)

    def require_may(self, shard: GroupShard, generation: int, *, transactional: bool) -> None:
        """Raise ApiError unless the client may commit. Create the group for non-members."""
        request = self._call.request
        member_id = request.member_id
        consumers = shard.consumers.get(request.group_id)
        if consumers is not None:
            topics = self._call.broker.cluster.controller.topics
            partitions = [
                (topics[name].id, one.partition_index) for name, one, error in self._rows() if error is ErrorCode.none
            ]
            knows_stale = self._call.version >= _KNOWS_STALE_SINCE
            consumers.require_may_commit(
                member_id, generation, partitions, transactional=transactional, knows_stale=knows_stale
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
            shard.classic_protocol.alive(group, member_id)

    def _rows(self) -> list[tuple[str, Any, ErrorCode]]:
        """Return for each partition the topic's name, its part of the request, and its error."""
        return [
            (name or "", one, error)
            for topic, name, topic_errors in zip(self._call.request.topics, self._names, self.errors, strict=True)
            for one, error in zip(topic.partitions, topic_errors, strict=True)
        ]

    def write(
        self,
        shard: GroupShard,
        then: Callable[[ErrorCode], object],
        *,
        retention: int = -1,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Write the valid offsets, in a producer's transaction if there is one. `retention` in ms, -1 for none."""
        now = self._call.broker.now_ms()
        offsets: dict[OffsetKey, Offset] = {}
        for topic, name, topic_errors in zip(self._call.request.topics, self._names, self.errors, strict=True):
            for place, one in enumerate(topic.partitions):
                if topic_errors[place] is not ErrorCode.none:
                    continue
                if not shard.metadata_fits(one.committed_metadata):
                    topic_errors[place] = ErrorCode.offset_metadata_too_large
                    continue
                offsets[OffsetKey(self._call.request.group_id, name or "", one.partition_index)] = Offset(
                    one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "", now,
                    None if retention < 0 else now + retention,
                )  # fmt: skip
        if offsets:
            shard.commit(offsets, then, client_id=self._call.client_id, producer=producer)
        else:
            then(ErrorCode.none)


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return response(request, [[error] * len(topic.partitions) for topic in request.topics])


def response(request: Any, errors: Errors) -> Message:
    """Return a response with an error for each partition of the request."""
    return Message(
        topics=[
            Message(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    Message(partition_index=one.partition_index, error_code=error)
                    for one, error in zip(topic.partitions, topic_errors, strict=True)
                ],
            )
            for topic, topic_errors in zip(request.topics, errors, strict=True)
        ],
    )
