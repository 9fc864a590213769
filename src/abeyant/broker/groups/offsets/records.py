"""The records of committed offsets in `__consumer_offsets`, byte for byte as Kafka writes them: keys of kind 0 and 1.

Values are written in version 3, or in version 1 if an old client set a retention time, and read in versions 0 to 3.
"""

from __future__ import annotations

from typing import NamedTuple

from abeyant.broker.coordinator.schema import Field, Schema

OFFSET = 1

_KEY = Schema("the key of an offset", OFFSET, group="string", topic="string", partition="int32")
_VALUE = Schema(
    "an offset", 3, offset="int64", leader_epoch=Field("int32", since=3, default=-1), metadata="string",
    commit_ms="int64", expire_ms=Field("int64", since=1, until=1, default=-1),
)  # fmt: skip


class OffsetKey(NamedTuple):
    """The key of a committed offset: a group and a partition."""

    group: str
    topic: str
    partition: int


class Offset(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None = None


def offset_key(key: OffsetKey) -> bytes:
    """Return the record's key as Kafka writes it."""
    return _KEY.write(OFFSET, key)


def read_offset_key(data: bytes) -> OffsetKey:
    """Return the group and partition from a key of either version. Raises ValueError."""
    key = _KEY.read(data)
    return OffsetKey(key.group, key.topic, key.partition)


def offset_value(offset: Offset) -> bytes:
    """Return the record's value as Kafka writes it."""
    return _VALUE.write(3 if offset.expire_ms is None else 1, offset)


def read_offset_value(data: bytes) -> Offset:
    """Return the offset from a value of version 0 to 3. Raises ValueError."""
    value = _VALUE.read(data)
    expire_ms = None if value.expire_ms < 0 else value.expire_ms
    return Offset(value.offset, value.leader_epoch, value.metadata, value.commit_ms, expire_ms)
