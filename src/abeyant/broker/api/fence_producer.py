"""Fence the producer of a transactional id, for a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.coordinator.topics import TRANSACTIONS, partition_for
from abeyant.broker.errors import ApiError
from abeyant.broker.transactions.transaction import Producer
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError, did_you_mean

if TYPE_CHECKING:
    from abeyant.broker.api.ports import Cluster
    from abeyant.broker.transactions.shard import TransactionShard

_FENCED = (ErrorCode.none, ErrorCode.concurrent_transactions)  # the second: its open transaction is being aborted


def fence_producer(cluster: Cluster, transactional_id: str) -> None:
    """Fence as another producer with the same id does. Raises AbeyantError where that is impossible.

    In the loop's thread.
    """
    shard = _shard(cluster, transactional_id)
    transaction = shard.transactions.get(transactional_id)
    if transaction is None:
        known = did_you_mean(transactional_id, shard.transactions)
        raise AbeyantError(f"there is no transactional id {transactional_id!r}{known}")
    epoch = transaction.now.epoch
    refused: list[ErrorCode] = []

    def done(error: ErrorCode, _: Producer) -> None:
        if error not in _FENCED or transaction.now.epoch == epoch:
            refused.append(error)

    shard.initialize(transactional_id, transaction.now.timeout_ms, None, done)
    cluster.network.settle()
    if refused:
        state = transaction.now.state.shown
        raise AbeyantError(f"cannot fence {transactional_id!r}, which is in {state}: {refused[0].name.upper()}")


def _shard(cluster: Cluster, transactional_id: str) -> TransactionShard:
    topic = cluster.controller.topics.get(TRANSACTIONS.name)
    states = [] if topic is None else topic.partitions
    leader = states[partition_for(transactional_id, len(states))].leader if states else -1
    broker = cluster.brokers.get(leader)
    if broker is None:
        raise AbeyantError(f"cannot fence {transactional_id!r}: nobody coordinates it; has a producer begun with it?")
    if broker.paused:
        raise AbeyantError(f"cannot fence {transactional_id!r}: broker {leader}, which coordinates it, is paused")
    try:
        shard: TransactionShard = broker.transaction_coordinator.shard(transactional_id)
    except ApiError as error:
        raise AbeyantError(f"cannot fence {transactional_id!r}: {error.code.name.upper()}") from None
    return shard
