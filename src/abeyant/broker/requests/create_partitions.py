"""CreatePartitions (key 37, versions 0-3): add partitions to topics.

Kafka: `ReplicationControlManager.createPartitions`.
Not implemented: controller mutation quotas.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import each_once
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Add the partitions, and answer with a result for each topic."""
    controller = call.broker.cluster.controller
    request = call.request
    results = []
    for topic, repeated in each_once(request.topics, "name"):
        try:
            if repeated:
                raise ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
            if topic.name not in controller.topics:
                raise ApiError(ErrorCode.unknown_topic_or_partition)
            assignments = None if topic.assignments is None else [one.broker_ids for one in topic.assignments]
            controller.create_partitions(
                controller.topic(topic.name), topic.count, assignments, validate_only=request.validate_only
            )
            results.append(_response(topic.name, ErrorCode.none, None))
        except ApiError as error:
            results.append(_response(topic.name, error.code, error.message))
    call.answer(Message(results=results))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(results=[_response(topic.name, error, None) for topic in request.topics])


def _response(name: str, error: ErrorCode, message: str | None) -> Message:
    return Message(name=name, error_code=error, error_message=message)
