"""Which committed offsets are past their retention. Kafka: `OffsetExpirationCondition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.consumer.group import ConsumerGroup
from abeyant.broker.groups.streams.group import StreamsGroup
from abeyant.broker.groups.subscription import CONSUMER

if TYPE_CHECKING:
    from abeyant.broker.groups.offsets.committed import Offsets
    from abeyant.broker.groups.offsets.records import OffsetKey

WithOffsets = ClassicGroup | ConsumerGroup | StreamsGroup


def is_old(
    group: WithOffsets, key: OffsetKey, offsets: Offsets, replicated: int, now_ms: int, retention_ms: int
) -> bool:
    """Return whether a group's offset may be deleted. O(members)."""
    offset = offsets.committed(key, replicated)
    if offset is None or offsets.is_unstable(key):
        return False
    since = offset.commit_ms
    if not isinstance(group, ClassicGroup):
        if group.is_subscribed(key.topic):
            return False
    elif group.simple:
        pass
    elif group.state is State.EMPTY:
        since = offset.commit_ms if group.since_ms is None else group.since_ms
    elif group.protocol_type != CONSUMER or group.state is not State.STABLE or group.is_subscribed(key.topic):
        return False
    if offset.expire_ms is not None:
        return now_ms >= offset.expire_ms
    return now_ms - since >= retention_ms
