"""CreateTopics (key 19, versions 2-7): create topics.

Kafka: `ReplicationControlManager.createTopics`.
Not implemented: create.topic.policy.class.name.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.quotas.limits import Record
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.config_resources import describe
from abeyant.broker.requests.common.results import results
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Create the topics. Respond with a result for each topic."""
    mutations = call.mutations(strict_since=6)
    create = partial(_create, call, mutations.record)
    topics = results(call.request.topics, create, _failed, key="name", repeated="Duplicate topic name.")
    call.answer_mutations(Message(topics=topics), mutations)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(topics=results(request.topics, error, _failed))


def _failed(topic: Any, error: ErrorCode) -> Message:
    return Message(name=topic.name, error_code=error)


def _create(call: Call, quota: Record, new_topic: Any) -> Message:
    assignments: dict[int, tuple[int, ...]] = {}
    for assignment in new_topic.assignments:
        if assignment.partition_index in assignments:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        assignments[assignment.partition_index] = assignment.broker_ids
    controller = call.broker.cluster.controller
    topic = controller.create_topic(
        new_topic.name, new_topic.num_partitions, new_topic.replication_factor, assignments,
        {config.name: config.value for config in new_topic.configs}, validate_only=call.request.validate_only,
        quota=quota,
    )  # fmt: skip
    return Message(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[describe(entry) for entry in topic.settings.describe(None, controller.controller_id)],
    )
