"""DeleteShareGroupOffsets (key 92, versions 0-0): delete the states of a share group without members, by topic.

Kafka: `GroupCoordinatorService.deleteShareGroupOffsets`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.share.states import Results
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.features import UNSUPPORTED, require_shares
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Delete the states of the topics' share partitions, then respond."""
    require_shares(call, UNSUPPORTED)
    request = call.request
    shard = group_shard(call, request.group_id, expire_overdue=True)
    if shard.share_group(request.group_id).members:
        raise ApiError(ErrorCode.non_empty_group, "The group is not empty.")
    controller = call.broker.cluster.controller
    states = shard.share_states.of(request.group_id)
    names = [topic.topic_name for topic in request.topics]
    ids = {name: controller.topics[name].id for name in names if name in controller.topics}
    partitions = {topic: states.initialized[topic] for topic in ids.values() if topic in states.initialized}

    def answer(results: Results) -> None:
        rows = []
        for name in names:
            topic = ids.get(name)
            row = Message(topic_name=name, topic_id=topic if topic in partitions else None)
            if topic is None:
                row.error_code = ErrorCode.unknown_topic_or_partition
                row.error_message = "This server does not host this topic-partition."
            elif topic not in partitions:
                row.error_code = ErrorCode.unknown_topic_or_partition
                row.error_message = "There is no offset information to delete."
            else:
                errors = [
                    error for (topic_id, _), (error, _) in results.items() if topic_id == topic and error is not None
                ]
                if errors:
                    row.error_code, row.error_message = errors[0].code, errors[0].message
            rows.append(row)
        call.answer(Message(responses=rows))

    if partitions:
        shard.share_states.delete(request.group_id, partitions, answer)
    else:
        answer({})


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(error_code=error, responses=[])


def refused_rows(_: Call, request: Any, error: ErrorCode) -> Message:
    """Return a response with this error for each topic of the request."""
    return Message(
        responses=[Message(topic_name=topic.topic_name, topic_id=None, error_code=error) for topic in request.topics]
    )
