"""CreateTopics (key 19, versions 2-7): create topics.

Kafka: `ReplicationControlManager.createTopics`.
Not implemented: create.topic.policy.class.name, controller mutation quotas.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import Topic
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Make those that can be made, and answer with a result for each."""
    request = call.request
    names = Counter(topic.name for topic in request.topics)
    results = []
    for asked in {topic.name: topic for topic in request.topics}.values():
        try:
            if names[asked.name] > 1:
                raise ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
            results.append(_made(asked, _create(call, asked), call.broker.cluster.controller.controller_id))
        except ApiError as error:
            results.append(_failed(asked.name, error.code, error.message))
    call.answer(Message(topics=results))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(topics=[_failed(topic.name, error, None) for topic in request.topics])


def _create(call: Call, asked: Any) -> Topic:
    assignments: dict[int, tuple[int, ...]] = {}
    for assignment in asked.assignments:
        if assignment.partition_index in assignments:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        assignments[assignment.partition_index] = assignment.broker_ids
    return call.broker.cluster.controller.create_topic(
        asked.name, asked.num_partitions, asked.replication_factor, assignments,
        {config.name: config.value for config in asked.configs}, validate_only=call.request.validate_only,
    )  # fmt: skip


def _made(asked: Any, topic: Topic, controller: int) -> Message:
    return Message(
        name=asked.name,
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
