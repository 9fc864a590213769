"""AlterPartitionReassignments (key 45, versions 0-1): move partitions to other brokers, or cancel a move.

Kafka: `ReplicationControlManager.alterPartitionReassignments`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"AlterPartitionReassignmentsRequest": {"allow_replication_factor_change": True}}
_REPEATED = "Partition {} is named more than once."


def handle(call: Call) -> None:
    """Start or cancel the moves. Respond with a result for each partition; moves continue after the response."""
    request = call.request
    reassign = partial(_reassign, call)
    responses = by_topic(request.topics, reassign, _failed, key="partition_index", repeated=_REPEATED)
    may_change = request.allow_replication_factor_change
    call.answer(Message(responses=responses, allow_replication_factor_change=may_change))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    may_change = request.allow_replication_factor_change
    responses = by_topic(request.topics, error, _failed)
    return Message(error_code=error, responses=responses, allow_replication_factor_change=may_change)


def _failed(move: Any, error: ErrorCode) -> Message:
    return Message(partition_index=move.partition_index, error_code=error)


def _reassign(call: Call, moved: Any, move: Any) -> Message:
    controller = call.broker.cluster.controller
    topic = controller.topics.get(moved.name)
    if topic is None or not 0 <= move.partition_index < len(topic.partitions):
        what = "a topic named " + moved.name if topic is None else f"partition {moved.name}:{move.partition_index}"
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"Unable to find {what}.")
    state = topic.partitions[move.partition_index]
    controller.leaders.reassign(state, move.replicas, factor_may_change=call.request.allow_replication_factor_change)
    return Message(partition_index=move.partition_index)
