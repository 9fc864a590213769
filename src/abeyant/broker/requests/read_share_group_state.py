"""ReadShareGroupState (key 84, versions 0-0): read the state of share partitions for the leaders that take them over.

Kafka: `ShareCoordinatorService.readState`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.share_state import Finish, answer_each, error_response
from abeyant.broker.shares.state.records import ShareKey
from abeyant.broker.shares.state.shard import ShareStateShard
from abeyant.broker.wire.schema import Message

__all__ = ["error_response", "handle"]


def handle(call: Call) -> None:
    """Respond with the state of each share partition."""
    answer_each(call, _one)


def _one(shard: ShareStateShard, key: ShareKey, partition: Any, row: Message, finish: Finish) -> None:
    state = shard.read(key, partition.leader_epoch, finish)
    row.state_epoch = state.state_epoch
    row.start_offset = state.start
    row.state_batches = [
        Message(first_offset=one.first, last_offset=one.last, delivery_state=one.state, delivery_count=one.deliveries)
        for one in state.batches
    ]
