"""DeleteShareGroupState (key 86, versions 0-0): delete the states of share partitions.

Kafka: `ShareCoordinatorService.deleteState`.
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
    """Delete the states of the share partitions, then respond."""
    answer_each(call, _one)


def _one(shard: ShareStateShard, key: ShareKey, partition: Any, row: Message, finish: Finish) -> None:
    shard.delete(key, finish)
