"""Validate, decode and encode the decompressed records of a batch.

A record is: its length · attributes (one byte) · timestamp delta · offset delta · key · value · headers. All lengths
and deltas are zigzag varints, -1 for null (Kafka's protocol guide, "Record").

A leader runs `survey` over every batch that it appends, as Kafka does: all lengths must add up, and the count must
match the header's. Compiled, `survey` takes some 10 ns per record, and copies nothing.
"""

from __future__ import annotations

from typing import NamedTuple

_LONGEST_INT = 5  # bytes of a varint of 32 bits
_LONGEST_LONG = 10
_WORD = 0xFFFFFFFFFFFFFFFF
_GREATEST = (1 << 63) - 1
_SMALLEST = -_GREATEST - 1


class MalformedRecordsError(Exception):
    """Invalid records in a batch. The message names the record, if known, and the reason."""


class Survey(NamedTuple):
    """The result of validating a batch's records. `*_delta` are timestamps in ms, relative to the base timestamp."""

    least_delta: int
    greatest_delta: int
    in_order: bool  # the offset deltas are 0, 1, 2, ...
    plain: bool  # no record has attributes
    without_key: bool  # at least one record has no key


class Record(NamedTuple):
    """A decoded record. `timestamp` is in ms, or -1 for none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Walker:
    """A decoder that walks over the decompressed bytes of a batch's records, one record after the other."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        """Start at `position` of `data`, which ends with the last record."""
        self._data = data
        self._position = position
        self._end = len(data)

    def survey(self, count: int) -> Survey:
        """Validate `count` records, and check that no bytes follow. Raises MalformedRecordsError."""
        least = _GREATEST
        greatest = _SMALLEST
        in_order = True
        plain = True
        without_key = False
        index = 0
        while index < count:
            end = self._begin(index)
            self._need(1)
            if self._data[self._position]:
                plain = False
            self._position += 1
            time = self._varlong()
            if time < least:
                least = time
            if time > greatest:
                greatest = time
            if self._varint() != index:
                in_order = False
            if self._skip_nullable() < 0:
                without_key = True
            self._skip_nullable()
            self._skip_headers()
            if self._position != end:
                raise MalformedRecordsError(f"Invalid record size: record {index} does not end where its length says")
            index += 1
        if self._position != self._end:
            raise MalformedRecordsError("Incorrect declared batch size, records still remaining in file")
        return Survey(least, greatest, in_order, plain, without_key)

    def read(self, index: int, base_offset: int, base_timestamp: int) -> Record:
        """Return the next record. Raises MalformedRecordsError; `index` is the record's number, for the message."""
        end = self._begin(index)
        self._need(1)
        self._position += 1
        timestamp = base_timestamp + self._varlong()
        offset = base_offset + self._varint()
        key = self._nullable()
        value = self._nullable()
        headers = []
        left = self._varint()
        if left < 0:
            raise MalformedRecordsError(f"Found invalid number of record headers {left}")
        while left:
            name = self._nullable()
            if name is None:
                raise MalformedRecordsError("Invalid negative header key size -1")
            headers.append((name.decode(errors="replace"), self._nullable()))
            left -= 1
        if self._position != end:
            raise MalformedRecordsError(f"Invalid record size: record {index} does not end where its length says")
        return Record(offset, timestamp, key, value, tuple(headers))

    @property
    def at_end(self) -> bool:
        """Return whether all bytes were read."""
        return self._position == self._end

    def _begin(self, index: int) -> int:
        if self._position >= self._end:
            raise MalformedRecordsError(f"Incorrect declared batch size, premature EOF reached after {index} records")
        size = self._varint()
        if size < 0 or size > self._end - self._position:
            raise MalformedRecordsError(f"Invalid record size: record {index} declares a size of {size} bytes")
        return self._position + size

    def _skip_headers(self) -> None:
        left = self._varint()
        if left < 0:
            raise MalformedRecordsError(f"Found invalid number of record headers {left}")
        while left:
            if self._skip_nullable() < 0:
                raise MalformedRecordsError("Invalid negative header key size -1")
            self._skip_nullable()
            left -= 1

    def _skip_nullable(self) -> int:
        size = self._varint()
        if size > 0:
            self._need(size)
            self._position += size
        return size

    def _nullable(self) -> bytes | None:
        size = self._varint()
        if size < 0:
            return None
        self._need(size)
        position = self._position
        self._position += size
        return bytes(self._data[position : position + size])

    def _need(self, size: int) -> None:
        if size > self._end - self._position:
            raise MalformedRecordsError("Found a record that is longer than its batch")

    def _varint(self) -> int:
        return self._zigzag(_LONGEST_INT)

    def _varlong(self) -> int:
        return self._zigzag(_LONGEST_LONG)

    def _zigzag(self, longest: int) -> int:
        value = 0
        shift = 0
        position = self._position
        while True:
            if position >= self._end:
                raise MalformedRecordsError("Found a record that is longer than its batch")
            byte = self._data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            longest -= 1
            if longest == 0:
                raise MalformedRecordsError("Varint is too long")
        self._position = position
        return _signed(value)


def _signed(value: int) -> int:
    # Interpreted integers are unbounded: drop the bits above 64, as C does.
    value &= _WORD
    if value & 1:
        return -(value >> 1) - 1
    return value >> 1


def survey(records: bytes, count: int) -> Survey:
    """Validate all `count` records of a batch. Raises MalformedRecordsError. O(records)."""
    return Walker(records).survey(count)


def decode(records: bytes, count: int, base_offset: int, base_timestamp: int) -> list[Record]:
    """Decode all `count` records of a batch. Raises MalformedRecordsError."""
    walker = Walker(records)
    found = [walker.read(index, base_offset, base_timestamp) for index in range(count)]
    if not walker.at_end:
        raise MalformedRecordsError("Incorrect declared batch size, records still remaining in file")
    return found


def encode(records: list[Record], base_offset: int, base_timestamp: int) -> bytes:
    """Encode records, uncompressed, with offsets and timestamps relative to the batch's base offset and timestamp."""
    out = bytearray()
    for record in records:
        body = bytearray(b"\0")
        _put(body, record.timestamp - base_timestamp)
        _put(body, record.offset - base_offset)
        _put_nullable(body, record.key)
        _put_nullable(body, record.value)
        _put(body, len(record.headers))
        for name, value in record.headers:
            _put_nullable(body, name.encode())
            _put_nullable(body, value)
        _put(out, len(body))
        out += body
    return bytes(out)


def _put(out: bytearray, value: int) -> None:
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def _put_nullable(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)  # -1
        return
    _put(out, len(value))
    out += value
