"""DescribeQuorum (key 55, versions 0-2): describe the quorum, whose only voter is the controller.

Kafka: `KafkaRaftClient.handleDescribeQuorumRequest`.
Not implemented: a quorum of several controllers.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.ports import Cluster
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import ErrorCode, Message

_PARTITION = "__cluster_metadata", 0
_EPOCH = 1  # no other controller was ever elected
_NOT_HERE = "This server does not host this topic-partition."


def handle(call: Call) -> None:
    """Describe the only partition of the quorum, `__cluster_metadata`."""
    cluster = call.broker.cluster
    nodes: list[Message] = []

    def partition(topic: Any, query: Any) -> Message:
        if (topic.topic_name, query.partition_index) != _PARTITION:
            raise ApiError(ErrorCode.unknown_topic_or_partition, _NOT_HERE)
        nodes[:] = [Message(node_id=cluster.controller.controller_id)]  # without listeners, as the controller has none
        return _quorum(cluster)

    topics = by_topic(call.request.topics, partition, _failed, name="topic_name")
    call.answer(Message(error_message="", topics=topics, nodes=nodes))


def _failed(query: Any, error: ErrorCode) -> Message:
    return Message(partition_index=query.partition_index, error_code=error)


def _quorum(cluster: Cluster) -> Message:
    controller = cluster.controller
    quorum = Message(
        error_message="", leader_id=controller.controller_id, leader_epoch=_EPOCH, high_watermark=controller.changes,
        current_voters=[], observers=[],
    )  # fmt: skip
    now = cluster.clock.now_ms()
    for broker in cluster.brokers:
        state = Message(
            replica_id=broker, log_end_offset=controller.changes, last_fetch_timestamp=now,
            last_caught_up_timestamp=now,
        )  # fmt: skip
        if broker == controller.controller_id:
            quorum.current_voters.append(state)
        elif broker in controller.members:
            quorum.observers.append(state)
    return quorum
