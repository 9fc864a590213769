"""AddOffsetsToTxn (key 25, versions 0-4): add the partition with a group's offsets to a transaction.

Kafka: `KafkaApis.handleAddOffsetsToTxnRequest`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.coordinator.topics import OFFSETS, partition_for, present
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.transactional import answer_with, shard_of
from abeyant.broker.transactions.transaction import Producer
from abeyant.broker.wire.schema import ErrorCode, Message

_KNOWS_FENCED_SINCE = 2


def handle(call: Call) -> None:
    """Add the partition at the coordinator."""
    request = call.request
    then = answer_with(call, lambda error: refused(request, error), _KNOWS_FENCED_SINCE)
    cluster = call.broker.cluster
    try:
        shard = shard_of(call, request.transactional_id)
        topic = present(cluster.controller, cluster.settings, OFFSETS)
    except ApiError as error:
        then(error.code)
        return
    key = topic.name, partition_for(request.group_id, len(topic.partitions))
    producer = Producer(request.producer_id, request.producer_epoch)
    shard.add(request.transactional_id, producer, [key], 0, then)


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(error_code=error)
