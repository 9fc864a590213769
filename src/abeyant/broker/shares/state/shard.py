"""The states of share partitions in one partition of `__share_group_state`, while this broker leads it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.coordinator.schema import version_of
from abeyant.broker.coordinator.shard import Entry, Shard, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.shares.spans import StateBatch
from abeyant.broker.shares.state import records
from abeyant.broker.shares.state.merging import merge
from abeyant.broker.shares.state.records import ShareKey, ShareState
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.log import Batch
    from abeyant.broker.log.records import Record
    from abeyant.broker.replica.partition import Partition
    from abeyant.purgatory.ports import Stoppable

Then = Callable[[ErrorCode], object]
_PRUNE_INTERVAL = 300.0  # seconds; Kafka's share.coordinator.state.topic.prune.interval.ms


class ShareStateShard(Shard):
    """The share coordinator's state in one partition. Kafka: `ShareCoordinatorShard`."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        """Start empty; `load` fills it."""
        super().__init__(broker, partition)
        settings = broker.cluster.settings
        self.states: dict[ShareKey, ShareState] = {}
        self._updates: Counter[ShareKey] = Counter()  # since the last snapshot
        self._timeout: float = settings["share.coordinator.write.timeout.ms"] / 1000
        self._updates_per_snapshot: int = settings["share.coordinator.snapshot.update.records.per.snapshot"]
        self._needed_from: dict[ShareKey, int] = {}  # the offset of the last snapshot
        self._prune_task: Stoppable | None = None

    def replay(self, record: Record, batch: Batch) -> None:
        """Apply a record of `__share_group_state`."""
        assert record.key is not None
        key = records.read_key(record.key)
        if version_of(record.key) == records.UPDATE:
            if record.value is not None:
                change = records.read_update(record.value)
                state = self.states.get(key)
                self.states[key] = change if state is None else _changed(state, change)
                self._updates[key] += 1
        elif record.value is None:
            self.states.pop(key, None)
            self._updates.pop(key, None)
            self._needed_from.pop(key, None)
        else:
            self.states[key] = records.read_snapshot(record.value)
            self._updates.pop(key, None)
            self._needed_from[key] = record.offset

    def begin(self) -> None:
        """Start the timer that deletes records superseded by snapshots. The topic is not compacted, as in Kafka."""
        self._prune_task = self.broker.timer.call_later(_PRUNE_INTERVAL, self._prune)

    def end(self) -> None:
        """Cancel the timer, as another broker leads the partition now."""
        if self._prune_task is not None:
            self._prune_task.cancel()
            self._prune_task = None

    def _prune(self) -> None:
        self.begin()
        self.prune()

    def prune(self) -> None:
        """Delete the records before the oldest of all share partitions' last snapshots."""
        needed = min(self._needed_from.values(), default=self.partition.high_watermark)
        self.partition.delete_records(min(needed, self.partition.high_watermark))

    def initialize(self, key: ShareKey, state_epoch: int, start: int, then: Then) -> None:
        """Create a share partition's state, or replace a state whose epoch is not newer. Raises ApiError.

        With a `start` of -1, the leader that reads the state first chooses the start offset.
        """
        self._require_partition(key)
        current = self.states.get(key)
        if current is not None and state_epoch != -1 and current.state_epoch > state_epoch:
            raise ApiError(
                ErrorCode.fenced_state_epoch,
                "The share coordinator rejected the request because the share-group state epoch did not match.",
            )
        now_ms = self.broker.now_ms()
        epoch = 0 if current is None else current.snapshot_epoch + 1
        state = ShareState(epoch, state_epoch, 0, start, -1 if start == -1 else 0, (), now_ms, now_ms)
        self._append(records.snapshot(key, state), then)

    def read(self, key: ShareKey, leader_epoch: int, then: Then) -> ShareState:
        """Return the state for a leader. Write `leader_epoch` if it is new, then call `then`. Raises ApiError."""
        state = self._require_state(key, "Read", leader_epoch)
        if leader_epoch in (-1, state.leader_epoch):
            then(ErrorCode.none)
        else:
            self._change(key, state._replace(leader_epoch=leader_epoch, batches=()), then)
        return state

    def update(
        self,
        key: ShareKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start: int,
        complete: int,
        batches: Iterable[StateBatch],
        then: Then,
    ) -> None:
        """Write a leader's change. Raises ApiError if there is no state, or if its state or leader epoch is newer."""
        state = self._require_state(key, "Write", leader_epoch)
        if state_epoch != -1 and state.state_epoch > state_epoch:
            raise ApiError(
                ErrorCode.fenced_state_epoch,
                "The share coordinator rejected the request because the share-group state epoch did not match.",
            )
        self._change(key, state._replace(start=start, complete=complete, batches=tuple(batches)), then)

    def summary(self, key: ShareKey) -> ShareState:
        """Return the state, or a state with start -1 if there is none. Raises ApiError for an unknown partition."""
        self._require_partition(key)
        return self.states.get(key) or ShareState(0, 0, 0, -1, -1, (), 0, 0)

    def delete(self, key: ShareKey, then: Then) -> None:
        """Delete the state, if there is one."""
        self._require_partition(key)
        if key in self.states:
            self._append(records.tombstone(key), then)
        else:
            then(ErrorCode.none)

    def forget_topic(self, topic_id: uuid.UUID) -> None:
        """Delete the states of all share partitions of a deleted topic."""
        tombstones = [records.tombstone(key) for key in self.states if key.topic_id == topic_id]
        if tombstones:
            self.write(tombstones, ignore, timeout=self._timeout)

    def _change(self, key: ShareKey, change: ShareState, then: Then) -> None:
        if self._updates[key] < self._updates_per_snapshot:
            self._append(records.update(key, change._replace(batches=merge(change.batches, change.start))), then)
            return
        now_ms = self.broker.now_ms()
        state = _changed(self.states[key], change)
        snapshot = state._replace(snapshot_epoch=state.snapshot_epoch + 1, created_ms=now_ms, written_ms=now_ms)
        self._append(records.snapshot(key, snapshot), then)

    def _append(self, entry: Entry, then: Then) -> None:
        self.write([entry], then, timeout=self._timeout)

    def _require_partition(self, key: ShareKey) -> None:
        topic = self.broker.cluster.controller.by_id.get(key.topic_id)
        if key.partition < 0:
            raise ApiError(ErrorCode.invalid_request, "The partition id cannot be a negative number.")
        if topic is None or key.partition >= len(topic.partitions):
            raise ApiError(ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition.")

    def _require_state(self, key: ShareKey, operation: str, leader_epoch: int) -> ShareState:
        if key.partition < 0:
            self._require_partition(key)
        state = self.states.get(key)
        if state is None:
            raise ApiError(
                ErrorCode.invalid_request,
                f"{operation} operation on uninitialized share partition not allowed.",
            )
        if leader_epoch != -1 and state.leader_epoch > leader_epoch:
            raise ApiError(
                ErrorCode.fenced_leader_epoch,
                "The leader epoch in the request is older than the epoch on the broker.",
            )
        self._require_partition(key)
        return state


def _changed(state: ShareState, change: ShareState) -> ShareState:
    """Return the state with a change applied to it."""
    start = state.start if change.start == -1 else change.start
    return state._replace(
        start=start,
        complete=change.complete,
        leader_epoch=state.leader_epoch if change.leader_epoch == -1 else change.leader_epoch,
        batches=merge((*state.batches, *change.batches), start),
    )
