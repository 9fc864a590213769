"""Delete committed offsets past their retention, and empty groups. Kafka: `OffsetExpirationCondition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.coordinator.shard import Entry, ignore
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.consumer.group import ConsumerGroup
from abeyant.broker.groups.offsets import records as offset_records
from abeyant.broker.groups.state import EMPTY, GroupsState
from abeyant.broker.groups.streams.group import StreamsGroup
from abeyant.broker.groups.subscription import CONSUMER

if TYPE_CHECKING:
    from abeyant.broker.groups.offsets.committed import Offsets
    from abeyant.broker.groups.offsets.records import OffsetKey
    from abeyant.purgatory.ports import Stoppable

WithOffsets = ClassicGroup | ConsumerGroup | StreamsGroup

_MINUTE = 60_000  # ms


class Retention:
    """The deletion of one shard's expired offsets and empty groups, every `offsets.retention.check.interval.ms`."""

    def __init__(self, state: GroupsState) -> None:
        """Read the settings. `begin` schedules the first check."""
        settings = state.broker.cluster.settings
        self._state = state
        self._seconds: float = settings["offsets.retention.check.interval.ms"] / 1000
        self._retention_ms: int = settings["offsets.retention.minutes"] * _MINUTE
        self._task: Stoppable | None = None

    def begin(self) -> None:
        """Schedule the next check, one interval from now."""
        self._task = self._state.broker.timer.call_later(self._seconds, self._look)

    def end(self) -> None:
        """Cancel the next check."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _look(self) -> None:
        self.begin()
        state, now_ms = self._state, self._state.broker.now_ms()
        entries: list[Entry] = []
        found: list[WithOffsets] = [*state.groups.values(), *state.consumers.values(), *state.streams.values()]
        for group in found:  # empty share groups stay, as in Kafka
            keys = state.offsets.keys(group.id)
            old = [
                key for key in keys
                if is_old(group, key, state.offsets, state.replicated, now_ms, self._retention_ms)
            ]  # fmt: skip
            entries += [(offset_records.offset_key(key), None) for key in old]
            idle = group.state in EMPTY and not state.offsets.has_pending(group.id)
            if idle and len(old) == len(keys) and not (isinstance(group, ClassicGroup) and group.pending):
                entries += state.tombstones(group.id, offsets=False)
        if entries:
            state.write_and_replay(entries, ignore)


def is_old(
    group: WithOffsets, key: OffsetKey, offsets: Offsets, replicated: int, now_ms: int, retention_ms: int
) -> bool:
    """Return whether an offset may be deleted: its retention has passed and no member uses its topic. O(members)."""
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
