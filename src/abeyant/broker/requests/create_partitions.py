"""CreatePartitions (key 37, versions 0-3): add partitions to topics.

Kafka: `ReplicationControlManager.createPartitions`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.quotas.limits import Record
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import results
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Add the partitions. Respond with a result for each topic."""
    mutations = call.mutations(strict_since=3)
    create = partial(_create, call, mutations.record)
    topics = results(call.request.topics, create, _failed, key="name", repeated="Duplicate topic name.")
    call.answer_mutations(Message(results=topics), mutations)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(results=results(request.topics, error, _failed))


def _failed(topic: Any, error: ErrorCode) -> Message:
    return Message(name=topic.name, error_code=error)


def _create(call: Call, quota: Record, new_partitions: Any) -> Message:
    controller = call.broker.cluster.controller
    topic = controller.topics.get(new_partitions.name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    assignments = (
        None
        if new_partitions.assignments is None
        else [assignment.broker_ids for assignment in new_partitions.assignments]
    )
    validate_only = call.request.validate_only
    controller.create_partitions(topic, new_partitions.count, assignments, validate_only=validate_only, quota=quota)
    return Message(name=new_partitions.name)
