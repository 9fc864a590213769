"""AlterPartitionReassignments (key 45, versions 0-1): move partitions to other brokers, or cancel a move.

Kafka: `ReplicationControlManager.alterPartitionReassignments`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import each_once
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"AlterPartitionReassignmentsRequest": {"allow_replication_factor_change": True}}


def handle(call: Call) -> None:
    """Begin or cancel the moves, and answer with a result for each. They go on after the response."""
    responses = []
    for topic in call.request.topics:
        results = []
        for move, repeated in each_once(topic.partitions, "partition_index"):
            error, message = _reassign(call, topic.name, move, repeated=repeated)
            results.append(_partition(move.partition_index, error, message))
        responses.append(Message(name=topic.name, partitions=results))
    call.answer(_response(call.request, ErrorCode.none, responses))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    responses = [
        Message(name=topic.name, partitions=[_partition(one.partition_index, error, None) for one in topic.partitions])
        for topic in request.topics
    ]
    return _response(request, error, responses)


def _reassign(call: Call, name: str, move: Any, *, repeated: bool) -> tuple[ErrorCode, str | None]:
    controller = call.broker.cluster.controller
    try:
        if repeated:
            raise ApiError(ErrorCode.invalid_request, f"Partition {move.partition_index} is named more than once.")
        topic = controller.topics.get(name)
        if topic is None or not 0 <= move.partition_index < len(topic.partitions):
            what = "a topic named " + name if topic is None else f"partition {name}:{move.partition_index}"
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"Unable to find {what}.")
        controller.reassign(
            topic.partitions[move.partition_index], move.replicas,
            factor_may_change=call.request.allow_replication_factor_change,
        )  # fmt: skip
    except ApiError as error:
        return error.code, error.message
    return ErrorCode.none, None


def _response(request: Any, error: ErrorCode, responses: list[Message]) -> Message:
    return Message(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error, responses=responses,
    )  # fmt: skip


def _partition(index: int, error: ErrorCode, message: str | None) -> Message:
    return Message(partition_index=index, error_code=error, error_message=message)
