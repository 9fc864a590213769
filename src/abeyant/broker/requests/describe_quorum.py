"""DescribeQuorum (key 55, versions 0-2): describe the quorum: the one controller, as its only voter.

Kafka: `KafkaRaftClient.handleDescribeQuorumRequest`.
Not implemented: a quorum of several controllers.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.ports import Cluster
from abeyant.broker.wire.schema import ErrorCode, Message

_PLACE = "__cluster_metadata", 0
_EPOCH = 1  # nobody else was ever elected
_NOT_HERE = "This server does not host this topic-partition."


def handle(call: Call) -> None:
    """Answer for the one partition of the quorum."""
    cluster = call.broker.cluster
    found = False
    topics = []
    for topic in call.request.topics:
        rows = []
        for query in topic.partitions:
            if (topic.topic_name, query.partition_index) == _PLACE:
                rows.append(_quorum(cluster))
                found = True
            else:
                rows.append(_partition(query.partition_index, ErrorCode.unknown_topic_or_partition, _NOT_HERE))
        topics.append(Message(topic_name=topic.topic_name, partitions=rows))
    # Where voters listen: the controller does so nowhere.
    nodes = [Message(node_id=cluster.controller.controller_id, listeners=())] if found else []
    call.answer(Message(error_code=ErrorCode.none, error_message="", topics=topics, nodes=nodes))


def refused(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(error_code=error, topics=(), nodes=())


def _quorum(cluster: Cluster) -> Message:
    controller = cluster.controller
    quorum = _partition(0, ErrorCode.none, "")
    quorum.leader_id, quorum.leader_epoch, quorum.high_watermark = controller.controller_id, _EPOCH, controller.changes
    now = cluster.clock.now_ms()
    for broker in cluster.brokers:
        state = Message(
            replica_id=broker, replica_directory_id=None, log_end_offset=controller.changes,
            last_fetch_timestamp=now, last_caught_up_timestamp=now,
        )  # fmt: skip
        if broker == controller.controller_id:
            quorum.current_voters.append(state)
        elif broker in controller.members:
            quorum.observers.append(state)
    return quorum


def _partition(index: int, error: ErrorCode, message: str) -> Message:
    return Message(
        partition_index=index, error_code=error, error_message=message, leader_id=0, leader_epoch=0, high_watermark=0,
        current_voters=[], observers=[],
    )  # fmt: skip
