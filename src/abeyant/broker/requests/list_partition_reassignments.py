"""ListPartitionReassignments (key 46, versions 0-0): list the reassignments in progress.

Kafka: `ReplicationControlManager.listPartitionReassignments`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.partition_state import PartitionState
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """List the reassignments of the requested partitions, or all."""
    topics = call.broker.cluster.controller.topics
    filters = call.request.topics
    wanted = None if filters is None else {topic.name: set(topic.partition_indexes) for topic in filters}
    results = []
    for name, topic in topics.items():
        moving = [
            _partition(state)
            for state in topic.partitions
            if state.reassigning and (wanted is None or state.partition in wanted.get(name, ()))
        ]
        if moving:
            results.append(Message(name=name, partitions=moving))
    call.answer(Message(topics=results))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error, and the partitions of the request."""
    topics = [
        Message(name=topic.name, partitions=[Message(partition_index=index) for index in topic.partition_indexes])
        for topic in request.topics or ()
    ]
    return Message(error_code=error, topics=topics)


def _partition(state: PartitionState) -> Message:
    return Message(
        partition_index=state.partition, replicas=state.replicas, adding_replicas=state.adding,
        removing_replicas=state.removing,
    )  # fmt: skip
