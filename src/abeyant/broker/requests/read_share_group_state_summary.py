"""ReadShareGroupStateSummary (key 87, versions 0-1): read share partitions' start offsets and delivery-complete counts.

Kafka: `ShareCoordinatorService.readStateSummary`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.share_state import Finish, answer_each, error_response
from abeyant.broker.shares.state.records import ShareKey
from abeyant.broker.shares.state.shard import ShareStateShard
from abeyant.broker.wire.schema import ErrorCode, Message

__all__ = ["error_response", "handle"]


def handle(call: Call) -> None:
    """Respond with the start offset and delivery-complete count of each share partition."""
    answer_each(call, _one)


def _one(shard: ShareStateShard, key: ShareKey, partition: Any, row: Message, finish: Finish) -> None:
    state = shard.summary(key)
    row.state_epoch = state.state_epoch
    row.leader_epoch = state.leader_epoch
    row.start_offset = state.start
    row.delivery_complete_count = state.complete
    finish(ErrorCode.none)
