"""AddOffsetsToTxn (key 25, versions 0-4): add the partition with a group's offsets to a transaction.

Kafka: `KafkaApis.handleAddOffsetsToTxnRequest`.
"""

from __future__ import annotations

from abeyant.broker.coordinator.topics import OFFSETS, ensure_topic, partition_for
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import error_for_version, transaction_shard
from abeyant.broker.transactions.transaction import Producer
from abeyant.broker.wire.schema import ErrorCode, Message

_KNOWS_FENCED_SINCE = 2


def handle(call: Call) -> None:
    """Add the partition of the group's offsets to the transaction."""
    request, cluster = call.request, call.broker.cluster

    def answer(error: ErrorCode) -> None:
        call.answer(Message(error_code=error_for_version(call, error, _KNOWS_FENCED_SINCE)))

    shard = transaction_shard(call, request.transactional_id)
    topic = ensure_topic(cluster.controller, cluster.settings, OFFSETS)
    key = topic.name, partition_for(request.group_id, len(topic.partitions))
    shard.add(request.transactional_id, Producer(request.producer_id, request.producer_epoch), [key], 0, answer)
