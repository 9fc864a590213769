"""CreatePartitions (key 37, versions 0-3): add partitions to topics.

Kafka: `ReplicationControlManager.createPartitions`.
Not implemented: controller mutation quotas.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Give topics more partitions, and answer with a result for each."""
    controller = call.broker.cluster.controller
    request = call.request
    names = Counter(topic.name for topic in request.topics)
    results = []
    for asked in {topic.name: topic for topic in request.topics}.values():
        try:
            if names[asked.name] > 1:
                raise ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
            if asked.name not in controller.topics:
                raise ApiError(ErrorCode.unknown_topic_or_partition)
            assignments = None if asked.assignments is None else [one.broker_ids for one in asked.assignments]
            controller.create_partitions(
                controller.topic(asked.name), asked.count, assignments, validate_only=request.validate_only
            )
            results.append(_response(asked.name, ErrorCode.none, None))
        except ApiError as error:
            results.append(_response(asked.name, error.code, error.message))
    call.answer(Message(results=results))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(results=[_response(topic.name, error, None) for topic in request.topics])


def _response(name: str, error: ErrorCode, message: str | None) -> Message:
    return Message(name=name, error_code=error, error_message=message)
