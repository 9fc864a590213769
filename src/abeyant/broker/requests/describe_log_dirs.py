"""DescribeLogDirs (key 35, versions 1-5): report the sizes of this broker's replicas, and the space on their disk.

Kafka: `ReplicaManager.describeLogDirs`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

_UNKNOWN = -1


def handle(call: Call) -> None:
    """Describe the requested partitions that this broker has, or all partitions that it has."""
    broker = call.broker
    filters = call.request.topics
    keys = None if filters is None else {(topic.topic, index) for topic in filters for index in topic.partitions}
    topics: dict[str, list[Message]] = {}
    for key, partition in broker.partitions.items():
        if keys is None or key in keys:
            topics.setdefault(partition.topic, []).append(_partition(partition))
    directory = broker.cluster.directory
    total, usable = _UNKNOWN, _UNKNOWN
    if directory is not None:
        from abeyant.broker.log.directory import disk_space

        total, usable = disk_space(directory.path)
    rows = [Message(name=name, partitions=partitions) for name, partitions in topics.items()]
    call.answer(Message(results=[Message(log_dir=broker.log_dir, topics=rows, total_bytes=total, usable_bytes=usable)]))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error. Before version 3 the response has no field for an error, as in Kafka."""
    return Message(error_code=error, results=[])


def _partition(partition: Partition) -> Message:
    log = partition.log
    return Message(
        partition_index=partition.index,
        partition_size=log.size,
        offset_lag=max(partition.high_watermark - log.end_offset, 0),
    )
