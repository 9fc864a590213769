"""The records of `__consumer_offsets` for committed offsets, byte for byte as Kafka's: keys of kind 0 and 1.

Values are of version 3, and of version 1 where an old client has said how long to keep them. Older ones are read.
"""

from __future__ import annotations

from typing import NamedTuple

from abeyant.broker.groups.primitives import Reader, Writer, read_version

OFFSET = 1
_FOR_EVER = -1


class OffsetKey(NamedTuple):
    """A group and a partition."""

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
    return Writer("h", OFFSET).text(key.group).text(key.topic).numbers("i", key.partition).done()


def read_offset_key(data: bytes) -> OffsetKey:
    """Return the group and partition from a key of either version."""
    reader = Reader(data)
    reader.number("h")
    return OffsetKey(reader.text(), reader.text(), reader.number("i"))


def offset_value(offset: Offset) -> bytes:
    """Return the record's value as Kafka writes it."""
    if offset.expire_ms is not None:
        return (
            Writer("hq", 1, offset.offset)
            .text(offset.metadata)
            .numbers("qq", offset.commit_ms, offset.expire_ms)
            .done()
        )
    return (
        Writer("hqi", 3, offset.offset, offset.leader_epoch).text(offset.metadata).numbers("q", offset.commit_ms).done()
    )


def read_offset_value(data: bytes) -> Offset:
    """Return the offset from a value of version 0 to 3. Raises ValueError for others."""
    reader = Reader(data)
    version = read_version(reader, 3, "an offset")
    offset = reader.number("q")
    leader_epoch = reader.number("i") if version >= 3 else -1
    metadata = reader.text()
    commit_ms = reader.number("q")
    expire_ms = reader.number("q") if version == 1 else _FOR_EVER
    return Offset(offset, leader_epoch, metadata, commit_ms, None if expire_ms == _FOR_EVER else expire_ms)
