"""The records of `__share_group_state`, byte for byte as Kafka writes them. The version of the key tells the kind.

0  a snapshot: the whole state of a share partition      1  an update: what changed since
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from abeyant.broker.coordinator.schema import Field, Schema
from abeyant.broker.shares.spans import StateBatch
from abeyant.broker.wire.schema import Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry

SNAPSHOT, UPDATE = 0, 1

_KEY = Schema("a share partition's key", UPDATE, group_id="string", topic_id="uuid", partition="int32")
_BATCH = Schema("a state batch", first="int64", last="int64", state="int8", deliveries="int16")
_SNAPSHOT = Schema(
    "a share partition's snapshot", flexible_since=0, snapshot_epoch="int32", state_epoch="int32", leader_epoch="int32",
    start="int64", created_ms="int64", written_ms="int64", batches=[_BATCH],
    complete=Field("int32", default=-1, tag=0),
)  # fmt: skip
_UPDATE = Schema(
    "a share partition's update", flexible_since=0, snapshot_epoch="int32", leader_epoch="int32", start="int64",
    batches=[_BATCH], complete=Field("int32", default=-1, tag=0),
)  # fmt: skip


class ShareKey(NamedTuple):
    """The key of a share partition's state: the group, and the partition's topic id and index."""

    group: str
    topic_id: uuid.UUID
    partition: int


class ShareState(NamedTuple):
    """The stored state of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start: int
    complete: int
    """Number of records from `start` on that are never delivered again; -1 if unknown."""
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int


def read_key(data: bytes) -> ShareKey:
    """Decode a record's key. Raises ValueError."""
    key = _KEY.read(data)
    return ShareKey(key.group_id, key.topic_id, key.partition)


def snapshot(key: ShareKey, state: ShareState) -> Entry:
    """Return the record of a snapshot, which has the whole state."""
    return _key(SNAPSHOT, key), _SNAPSHOT.write(0, state)


def tombstone(key: ShareKey) -> Entry:
    """Return the tombstone that deletes a share partition's state."""
    return _key(SNAPSHOT, key), None


def update(key: ShareKey, state: ShareState) -> Entry:
    """Return the record of an update: the changed batches, and the start, which is -1 if it is unchanged."""
    return _key(UPDATE, key), _UPDATE.write(0, state)


def read_snapshot(data: bytes) -> ShareState:
    """Decode the value of a snapshot to the state. Raises ValueError."""
    value = _SNAPSHOT.read(data)
    return ShareState(
        value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start, value.complete,
        _batches(value.batches), value.created_ms, value.written_ms,
    )  # fmt: skip


def read_update(data: bytes) -> ShareState:
    """Decode the value of an update to the change. Fields that only a snapshot has are 0. Raises ValueError."""
    value = _UPDATE.read(data)
    batches = _batches(value.batches)
    return ShareState(value.snapshot_epoch, 0, value.leader_epoch, value.start, value.complete, batches, 0, 0)


def _key(kind: int, key: ShareKey) -> bytes:
    return _KEY.write(kind, Message(group_id=key.group, topic_id=key.topic_id, partition=key.partition))


def _batches(batches: Iterable[Any]) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(one.first, one.last, one.state, one.deliveries) for one in batches)
