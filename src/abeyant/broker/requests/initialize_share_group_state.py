"""InitializeShareGroupState (key 83, versions 0-0): create or replace the states of share partitions.

Group coordinators send this request.
Kafka: `ShareCoordinatorService.initializeState`.
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
    """Create the states of the share partitions, then respond."""
    answer_each(call, _one)


def _one(shard: ShareStateShard, key: ShareKey, partition: Any, row: Message, finish: Finish) -> None:
    shard.initialize(key, partition.state_epoch, partition.start_offset, finish)
