"""CreateTopics (key 19, versions 2-7): create topics.

Kafka: `ReplicationControlManager.createTopics`.
Not implemented: create.topic.policy.class.name, controller mutation quotas.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import Topic
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import each_once
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Create the topics, and answer with a result for each."""
    results = []
    for topic, repeated in each_once(call.request.topics, "name"):
        try:
            if repeated:
                raise ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
            results.append(_created(_create(call, topic), call.broker.cluster.controller.controller_id))
        except ApiError as error:
            results.append(_failed(topic.name, error.code, error.message))
    call.answer(Message(topics=results))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(topics=[_failed(topic.name, error, None) for topic in request.topics])


def _create(call: Call, topic: Any) -> Topic:
    assignments: dict[int, tuple[int, ...]] = {}
    for assignment in topic.assignments:
        if assignment.partition_index in assignments:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        assignments[assignment.partition_index] = assignment.broker_ids
    return call.broker.cluster.controller.create_topic(
        topic.name, topic.num_partitions, topic.replication_factor, assignments,
        {config.name: config.value for config in topic.configs}, validate_only=call.request.validate_only,
    )  # fmt: skip


def _created(topic: Topic, controller: int) -> Message:
    return Message(
        name=topic.name,
        topic_id=topic.id,
        error_code=ErrorCode.none,
        topic_config_error_code=0,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            Message(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in topic.settings.describe(None, controller)
        ],
    )


def _failed(name: str, code: ErrorCode, message: str | None) -> Message:
    return Message(
        name=name, topic_id=None, error_code=code, error_message=message, topic_config_error_code=0, num_partitions=-1,
        replication_factor=-1, configs=[],
    )  # fmt: skip
