"""Find this broker's replica of a partition in a request."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.requests.common.ports import Broker


def partition_of(broker: Broker, name: str | None, topic_id: uuid.UUID | None, index: int) -> Partition:
    """Return this broker's replica. Raises ApiError where the partition is unknown, or on other brokers only."""
    if name is not None:
        partition = broker.partitions.get((name, index))
    else:
        partition = None if topic_id is None else broker.by_id.get((topic_id, index))
    if partition is not None:
        return partition
    controller = broker.cluster.controller
    if name is None and topic_id is None:
        raise ApiError(ErrorCode.unknown_topic_id)
    topic = controller.topic_of(name, topic_id)
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    raise ApiError(ErrorCode.not_leader_or_follower)
