"""WriteShareGroupState (key 85, versions 0-1): write the delivery states of share partitions' records.

Kafka: `ShareCoordinatorService.writeState`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.share_state import Finish, answer_each, error_response
from abeyant.broker.shares.spans import StateBatch
from abeyant.broker.shares.state.records import ShareKey
from abeyant.broker.shares.state.shard import ShareStateShard
from abeyant.broker.wire.schema import Message

__all__ = ["error_response", "handle"]
FILL: dict[str, dict[str, object]] = {"PartitionData": {"delivery_complete_count": -1}}


def handle(call: Call) -> None:
    """Write the changes of the share partitions' states, then respond."""
    answer_each(call, _one)


def _one(shard: ShareStateShard, key: ShareKey, partition: Any, row: Message, finish: Finish) -> None:
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in partition.state_batches
    ]
    shard.update(
        key, state_epoch=partition.state_epoch, leader_epoch=partition.leader_epoch, start=partition.start_offset,
        complete=partition.delivery_complete_count, batches=batches, then=finish,
    )  # fmt: skip
