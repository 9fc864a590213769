"""The record of a transactional id in `__transaction_state`, byte for byte as Kafka's.

    key     version int16 (0), transactional id string
    value   version int16 (1), then
            producer id int64, epoch int16, time-out int32 (ms), state int8,
            partitions: none or an array of topic string and indexes int32[], last change int64 (ms), start int64 (ms),
            tagged: 0 previous producer id int64, 1 next producer id int64, 2 the client's transaction version int16

Lengths are unsigned varints, by one too great, where the version is 1. (Kafka: `TransactionLogKey`,
`TransactionLogValue`.) Version 0, without tags, is read too.
"""

from __future__ import annotations

import struct
from collections import defaultdict

from abeyant.broker.log.batch import NO_PRODUCER
from abeyant.broker.transactions.transaction import BY_NUMBER, Key, Standing, State

_INT16, _INT32, _INT64 = (struct.Struct(code) for code in (">h", ">i", ">q"))
_START = struct.Struct(">qhib")
_TIMES = struct.Struct(">qq")
_VERSION = 1


def key_bytes(transactional_id: str) -> bytes:
    """Return the record's key."""
    name = transactional_id.encode()
    return _INT16.pack(0) + _INT16.pack(len(name)) + name


def id_of(key: bytes) -> str | None:
    """Return the transactional id; None for a key of another version."""
    version, size = _INT16.unpack_from(key)[0], _INT16.unpack_from(key, 2)[0]
    return key[4 : 4 + size].decode() if version == 0 else None


def value_bytes(now: Standing) -> bytes:
    """Return the record's value."""
    out = bytearray(_INT16.pack(_VERSION))
    out += _START.pack(now.producer_id, now.epoch, now.timeout_ms, now.state.number)
    if now.state is State.EMPTY:
        out += _varint(0)
    else:
        topics = defaultdict(list)
        for topic, index in sorted(now.partitions):
            topics[topic].append(index)
        out += _varint(len(topics) + 1)
        for topic, indexes in topics.items():
            name = topic.encode()
            out += _varint(len(name) + 1) + name + _varint(len(indexes) + 1)
            for index in indexes:
                out += _INT32.pack(index)
            out += _varint(0)
    out += _TIMES.pack(now.updated_ms, now.started_ms)
    tags = [
        (number, form.pack(value))
        for number, form, value, absent in (
            (0, _INT64, now.previous_id, NO_PRODUCER),
            (1, _INT64, now.next_id, NO_PRODUCER),
            (2, _INT16, now.version, 0),
        )
        if value != absent
    ]
    out += _varint(len(tags))
    for number, data in tags:
        out += _varint(number) + _varint(len(data)) + data
    return bytes(out)


def standing_of(value: bytes) -> Standing:
    """Return the state in a value. Raises ValueError, or what reading beyond its end raises, for other bytes."""
    version: int = _INT16.unpack_from(value)[0]
    if version not in (0, _VERSION):
        raise ValueError(f"a transactional id is written down in version {version}, which is not known")
    read = _Reader(value, flexible=version == _VERSION)
    producer_id, epoch, timeout_ms, state = read.fields(_START)
    partitions: set[Key] = set()
    for _ in range(read.count(_INT32)):
        topic = read.take(read.count(_INT16)).decode()
        partitions.update((topic, read.fields(_INT32)[0]) for _ in range(read.count(_INT32)))
        read.tags()
    updated_ms, started_ms = read.fields(_TIMES)
    tags = read.tags()
    return Standing(
        producer_id, epoch, timeout_ms, BY_NUMBER[state], frozenset(partitions), updated_ms, started_ms,
        version=_INT16.unpack(tags[2])[0] if 2 in tags else 0,
        previous_id=_INT64.unpack(tags[0])[0] if 0 in tags else NO_PRODUCER,
        next_id=_INT64.unpack(tags[1])[0] if 1 in tags else NO_PRODUCER,
    )  # fmt: skip


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes, *, flexible: bool) -> None:
        self._data = data
        self._position = _INT16.size
        self._flexible = flexible

    def fields(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self._data, self._position)
        self._position += form.size
        return found

    def take(self, size: int) -> bytes:
        self._position += size
        return self._data[self._position - size : self._position]

    def count(self, form: struct.Struct) -> int:
        """Write a length, 0 for none; `form` is that of version 0."""
        return max(self._varint() - 1 if self._flexible else self.fields(form)[0], 0)

    def tags(self) -> dict[int, bytes]:
        if not self._flexible:
            return {}
        return {self._varint(): self.take(self._varint()) for _ in range(self._varint())}

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
