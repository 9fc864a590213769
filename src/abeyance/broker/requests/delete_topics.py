"""DeleteTopics."""

from __future__ import annotations

from typing import Any

from abeyance.broker.errors import ApiError
from abeyance.broker.requests.call import Call
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "DeleteTopicsRequest": {"topic_names": (), "topics": ()},
    "DeleteTopicState": {"name": None, "topic_id": None},
}
_NAMED_TWICE = "Duplicate topic name."


def handle(call: Call) -> None:
    """Delete those that are there, and tell of each."""
    controller = call.broker.cluster.controller
    deletable = call.broker.cluster.settings["delete.topic.enable"]
    asked = _asked(call.request)
    results = []
    for name, topic_id in dict.fromkeys(asked):
        try:
            if not deletable:
                raise ApiError(ErrorCode.topic_deletion_disabled if call.version >= 3 else ErrorCode.invalid_request)
            if asked.count((name, topic_id)) > 1:
                raise ApiError(ErrorCode.invalid_request, "Duplicate topic id." if topic_id else _NAMED_TWICE)
            if name is not None and topic_id is not None:
                raise ApiError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
            topic = controller.topic_of(name, topic_id)
            controller.delete_topic(topic)
            results.append(_response(topic.name, topic.id, ErrorCode.none, None))
        except ApiError as error:
            results.append(_response(name, topic_id, error.code, error.message))
    call.answer(Message(throttle_time=NO_TIME, responses=results))


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return Message(
        throttle_time=NO_TIME,
        responses=[_response(name, topic_id, error, None) for name, topic_id in _asked(request)],
    )


def _asked(request: Any) -> list[tuple[str | None, Any]]:
    return [(name, None) for name in request.topic_names] + [(topic.name, topic.topic_id) for topic in request.topics]


def _response(name: str | None, topic_id: Any, error: ErrorCode, message: str | None) -> Message:
    return Message(name=name, topic_id=topic_id, error_code=error, error_message=message)
