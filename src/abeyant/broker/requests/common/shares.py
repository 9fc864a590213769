"""Check members and partitions, and apply acknowledgements, for ShareFetch and ShareAcknowledge."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.allowed import may_read
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.features import require_shares
from abeyant.broker.requests.common.topics import MOVED, leaders_of, name_leader
from abeyant.broker.shares.partition import RENEW, Acknowledgement
from abeyant.broker.wire.schema import ErrorCode, Message

TopicPartition = tuple[uuid.UUID | None, int]
"""A topic's id and a partition's index."""

Results = dict[TopicPartition, ApiError | None]

_LONGEST_ID = 36  # characters: a UUID's
_MAY_RENEW_SINCE = 2  # the version of both APIs


def require_member(call: Call) -> None:
    """Raise ApiError unless share groups are on and the request has a group and a member id of 1 to 36 characters."""
    require_shares(call)
    request = call.request
    if request.group_id is None:
        raise ApiError(ErrorCode.invalid_request)
    if not request.member_id or len(request.member_id) > _LONGEST_ID:
        raise ApiError(ErrorCode.invalid_request)


def lock_timeout(call: Call) -> timedelta:
    """Return the duration of the group's acquisition locks."""
    return timedelta(seconds=call.broker.shares.settings(call.request.group_id).lock_seconds)


def require_topic(call: Call, topic_id: uuid.UUID | None, index: int) -> str:
    """Return the topic's name. Raises ApiError for an unknown topic or partition, or if the client may not read it."""
    topic = None if topic_id is None else call.broker.cluster.controller.by_id.get(topic_id)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_id)
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    if not may_read(call, topic.name, None):
        raise ApiError(ErrorCode.topic_authorization_failed)
    return topic.name


def acknowledge(call: Call, then: Callable[[Results], object]) -> None:
    """Apply the acknowledgements of a request. Call `then` once with the error, or None, of each partition."""
    results: Results = {}
    acknowledgements: dict[TopicPartition, list[Acknowledgement]] = {}
    for topic in call.request.topics:
        for row in topic.partitions:
            key = topic.topic_id, row.partition_index
            batches = [
                Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in row.acknowledgement_batches
            ]
            try:
                if topic.topic_id not in call.broker.cluster.controller.by_id:
                    raise ApiError(ErrorCode.unknown_topic_id)
                _check(batches, may_renew=call.version >= _MAY_RENEW_SINCE and call.request.is_renew_ack)
                require_topic(call, *key)
            except ApiError as error:
                results[key] = error
            else:
                acknowledgements[key] = batches
    if not any(acknowledgements.values()):
        then(results)
        return
    remaining = set(acknowledgements)

    def done(key: TopicPartition, error: ApiError | None) -> None:
        results[key] = error
        remaining.discard(key)
        if not remaining:
            then(results)

    for key, batches in acknowledgements.items():
        if batches:
            _acknowledge(call, key, batches, partial(done, key))
        else:
            done(key, None)


def _acknowledge(
    call: Call, key: TopicPartition, batches: list[Acknowledgement], then: Callable[[ApiError | None], object]
) -> None:
    topic_id, index = key
    assert topic_id is not None
    shares = call.broker.shares
    share = shares.get(call.request.group_id, topic_id, index)
    if share is None:
        then(ApiError(ErrorCode.unknown_topic_or_partition))
        return

    def done(error: ApiError | None) -> None:
        shares.lost(share, error)
        then(error)

    share.acknowledge(call.request.member_id, batches, done)


def _check(batches: Iterable[Acknowledgement], *, may_renew: bool) -> None:
    """Raise ApiError unless the batches ascend, and each has one known type, or a known type for each offset."""
    last = -1
    for batch in batches:
        count = len(batch.types)
        if (
            not last <= batch.first <= batch.last
            or not count
            or count not in (1, batch.last - batch.first + 1)
            or not all(0 <= kind <= RENEW for kind in batch.types)
            or (RENEW in batch.types and not may_renew)
        ):
            raise ApiError(ErrorCode.invalid_request)
        last = batch.last


def name_leaders(call: Call, rows: Iterable[tuple[TopicPartition, Message]]) -> list[Message]:
    """Set the current leader in rows whose error is in `MOVED`. Return the brokers that lead these rows' partitions."""
    moved_partitions = []
    rows = list(rows)
    for (topic_id, index), row in rows:
        if row.error_code in MOVED:
            name_leader(row, call, None, topic_id, index)
            moved_partitions.append((None, topic_id, index))
    return leaders_of(call, moved_partitions) if moved_partitions else []


def new_row(index: int, error: ApiError | None) -> Message:
    """Return a partition's row of a response, with `error` or without an error."""
    return Message(
        partition_index=index,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=message_of(error),
        current_leader=Message(leader_id=0, leader_epoch=0),
    )


def by_topic(rows: Iterable[tuple[TopicPartition, Message]]) -> list[Message]:
    """Return the rows grouped by topic."""
    topics: dict[uuid.UUID | None, Message] = {}
    for (topic_id, _), row in rows:
        topics.setdefault(topic_id, Message(topic_id=topic_id, partitions=[])).partitions.append(row)
    return list(topics.values())


def message_of(error: ApiError | None) -> Any:
    """Return an error's message; None for no error."""
    return None if error is None else error.message
