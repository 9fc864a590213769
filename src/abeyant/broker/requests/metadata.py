"""Metadata (key 3, versions 0-13): list brokers, topics and leaders.

A missing topic is created if auto.create.topics.enable allows it.
Kafka: `KafkaApis.handleTopicMetadataRequest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from abeyant.broker.controller import Controller
from abeyant.broker.coordinator.topics import INTERNAL, ensure_topic
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import Topic
from abeyant.broker.placement import invalid_name
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import (
    CLUSTER_OPERATIONS,
    NO_OPERATIONS,
    TOPIC_OPERATIONS,
    describe_topic,
    live_brokers,
)
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "MetadataRequest": {
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    },
    "MetadataRequestTopic": {"topic_id": None},
}
_IDS_SINCE = 12  # the version


def handle(call: Call) -> None:
    """List the requested topics, or all."""
    request = call.request
    controller = call.broker.cluster.controller
    queries = request.topics
    _check(call, queries or ())
    if any(query.topic_id is not None for query in queries or ()):
        queries = [query for query in queries if query.topic_id is not None]  # as Kafka does
    if queries is None or (call.version == 0 and not queries):
        topics = [_describe(topic, call) for topic in controller.topics.values()]
    else:
        topics = list(_find(call, queries))
    operations = CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
    call.answer(
        Message(
            brokers=live_brokers(call),
            cluster_id=controller.cluster_id,
            controller_id=controller.controller_id,
            topics=topics,
            cluster_authorized_operations=operations,
        )
    )


def _check(call: Call, queries: Any) -> None:
    """Raise ApiError for a topic id before version 12, and for a topic that has neither a name nor an id."""
    if call.version < _IDS_SINCE and any(query.topic_id is not None for query in queries):
        raise ApiError(ErrorCode.invalid_request)
    if any(query.name is None and query.topic_id is None for query in queries):
        raise ApiError(ErrorCode.invalid_request if call.version < _IDS_SINCE else ErrorCode.unknown_server_error)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    topics = [
        Message(
            name=None if topic.topic_id is not None and request.__version__ >= _IDS_SINCE else topic.name or "",
            topic_id=topic.topic_id,
            error_code=error,
        )
        for topic in request.topics or ()
    ]
    return Message(error_code=error, topics=topics, cluster_id=None)


def _find(call: Call, queries: Any) -> Iterator[Message]:
    controller = call.broker.cluster.controller
    seen = set()
    for query in queries:
        if (query.name, query.topic_id) in seen:
            continue
        seen.add((query.name, query.topic_id))
        if query.topic_id is not None:
            topic = controller.by_id.get(query.topic_id)
            error = ErrorCode.unknown_topic_id
        else:
            topic = controller.topics.get(query.name or "")
            error = ErrorCode.none
            if topic is None:
                error = _create(call, controller, query.name or "")
        if topic is not None:
            yield _describe(topic, call)
        else:
            yield Message(name=query.name, topic_id=query.topic_id, error_code=error)


def _create(call: Call, controller: Controller, name: str) -> ErrorCode:
    """Create a missing topic if allowed. Always return an error, so that the client retries."""
    if invalid_name(name) is not None:
        return ErrorCode.invalid_topic_exception
    if not (call.request.allow_auto_topic_creation and call.broker.cluster.settings["auto.create.topics.enable"]):
        return ErrorCode.unknown_topic_or_partition
    try:
        if name in INTERNAL:
            ensure_topic(controller, call.broker.cluster.settings, INTERNAL[name])
        else:
            controller.create_topic(name, -1, -1, {}, {})
    except ApiError as error:
        if error.code is ErrorCode.invalid_topic_exception:
            return error.code
    return ErrorCode.unknown_topic_or_partition


def _describe(topic: Topic, call: Call) -> Message:
    operations = TOPIC_OPERATIONS if call.request.include_topic_authorized_operations else NO_OPERATIONS
    return describe_topic(topic, topic.partitions, call.broker.cluster.controller, operations)
