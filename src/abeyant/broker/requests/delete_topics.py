"""DeleteTopics (key 20, versions 1-6): delete topics by name or id.

Kafka: `ControllerApis.deleteTopics`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "DeleteTopicsRequest": {"topic_names": (), "topics": ()},
    "DeleteTopicState": {"name": None, "topic_id": None},
}
_NAMED_TWICE = "Duplicate topic name."


def handle(call: Call) -> None:
    """Delete the topics. Respond with a result for each topic."""
    controller = call.broker.cluster.controller
    deletable = call.broker.cluster.settings["delete.topic.enable"]
    targets = _targets(call.request)
    mutations = call.mutations(strict_since=5)
    results = []
    by_id = set()  # topics that the request names both by id and by name
    for name, topic_id in dict.fromkeys(targets):
        found_id = topic_id
        try:
            if not deletable:
                raise ApiError(ErrorCode.topic_deletion_disabled if call.version >= 3 else ErrorCode.invalid_request)
            if targets.count((name, topic_id)) > 1:
                raise ApiError(ErrorCode.invalid_request, "Duplicate topic id." if topic_id else _NAMED_TWICE)
            if name is not None and topic_id is not None:
                raise ApiError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
            if name is None and topic_id is None:
                raise ApiError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
            topic = controller.topic_of(name, topic_id)
            if (topic.name, None) in targets and (None, topic.id) in targets:
                by_id.add(topic.id)
                continue
            found_id = topic.id
            mutations.record(len(topic.partitions))
            controller.delete_topic(topic)
            results.append(Message(name=topic.name, topic_id=topic.id))
        except ApiError as error:
            results.append(Message(name=name, topic_id=found_id, error_code=error.code, error_message=error.message))
    for topic_id in by_id:
        message = "The provided topic name maps to an ID that was already supplied."
        name, code = controller.by_id[topic_id].name, ErrorCode.invalid_request
        results.append(Message(name=name, topic_id=topic_id, error_code=code, error_message=message))
    call.answer_mutations(Message(responses=results), mutations)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(
        responses=[Message(name=name, topic_id=topic_id, error_code=error) for name, topic_id in _targets(request)]
    )


def _targets(request: Any) -> list[tuple[str | None, Any]]:
    return [(name, None) for name in request.topic_names] + [(topic.name, topic.topic_id) for topic in request.topics]
