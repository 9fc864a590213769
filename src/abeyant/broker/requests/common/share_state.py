"""Handle the share group state APIs: get each partition's result from its shard of the share coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from abeyant.broker.errors import ApiError
from abeyant.broker.shares.persister import coordinator_key
from abeyant.broker.shares.state.records import ShareKey
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.requests.common.call import Call
    from abeyant.broker.shares.state.shard import ShareStateShard

Finish = Callable[[ErrorCode], object]
"""A callback that is called once, when the change is written, with the error or NONE."""

Do = Callable[["ShareStateShard", ShareKey, Any, Message, Finish], object]
"""A function that handles one partition of the request, and sets the fields of its result row. Raises ApiError."""


def answer_each(call: Call, do: Do) -> None:
    """Call `do` for each partition of the request. Respond with their results once all are finished."""
    topics: dict[uuid.UUID | None, dict[int, Message]] = {topic.topic_id: {} for topic in call.request.topics}
    remaining = sum(len(topic.partitions) for topic in call.request.topics)

    def finish(topic_id: uuid.UUID | None, row: Message, error: ErrorCode) -> None:
        nonlocal remaining
        if error is not ErrorCode.none:
            row.error_code = error
        topics[topic_id][row.partition] = row
        remaining -= 1
        if not remaining:
            call.answer(_response(topics))

    if not remaining:
        call.answer(_response(topics))
    for topic in call.request.topics:
        for partition in topic.partitions:
            row = Message(partition=partition.partition)
            done = partial(finish, topic.topic_id, row)
            try:
                if topic.topic_id is None:
                    raise ApiError(ErrorCode.invalid_request, "The topic id cannot be null.")
                key = ShareKey(call.request.group_id, topic.topic_id, partition.partition)
                shard = call.broker.share_coordinator.shard(coordinator_key(*key))
                do(shard, key, partition, row, done)
            except ApiError as error:
                row.error_message = error.message
                done(error.code)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    topics: dict[uuid.UUID | None, dict[int, Message]] = {
        topic.topic_id: {row.partition: Message(partition=row.partition, error_code=error) for row in topic.partitions}
        for topic in request.topics
    }
    return _response(topics)


def _response(topics: dict[uuid.UUID | None, dict[int, Message]]) -> Message:
    return Message(
        results=[Message(topic_id=topic_id, partitions=list(rows.values())) for topic_id, rows in topics.items()]
    )
