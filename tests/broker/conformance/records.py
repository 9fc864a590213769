"""Record batches of magic 2, made by hand and taken apart again; what is wrong in them is wanted."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import cramjam
from crc32c import crc32c

_HEAD = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
_BODY = struct.Struct(">hiqqqhii")  # attributes to the number of records
_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, the coordinator's epoch
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
GZIP = 1
ZSTD = 4
LOG_APPEND_TIME = 8
TRANSACTIONAL = 16
CONTROL = 32


@dataclass(frozen=True)
class Batch:
    """What goes into a batch; `None` is what is right for its records. Times are milliseconds."""

    values: tuple[bytes | None, ...] = (b"value",)
    keys: tuple[bytes | None, ...] | None = None
    at: int = 0
    every: int = 0
    attributes: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    count: int | None = None
    last_offset_delta: int | None = None
    max_timestamp: int | None = None
    offset_deltas: tuple[int, ...] | None = None
    crc: int | None = None
    length: int | None = None
    payload: bytes | None = None

    def data(self) -> bytes:
        keys = self.keys or (None,) * len(self.values)
        deltas = self.offset_deltas or tuple(range(len(self.values)))
        rows = [
            _record(delta, number * self.every, key, value)
            for number, (delta, key, value) in enumerate(zip(deltas, keys, self.values, strict=True))
        ]
        payload = b"".join(rows)
        if self.attributes & 7 == GZIP:
            payload = gzip.compress(payload, mtime=0)
        elif self.attributes & 7 == ZSTD:
            payload = bytes(cramjam.zstd.compress(payload))
        if self.payload is not None:
            payload = self.payload
        count = len(self.values) if self.count is None else self.count
        last = len(self.values) - 1 if self.last_offset_delta is None else self.last_offset_delta
        latest = self.at + self.every * (len(self.values) - 1) if self.max_timestamp is None else self.max_timestamp
        body = _BODY.pack(
            self.attributes, last, self.at, latest, self.producer_id, self.producer_epoch, self.sequence, count
        )
        crc = crc32c(body + payload) if self.crc is None else self.crc
        length = _HEAD.size - 12 + len(body) + len(payload) if self.length is None else self.length
        return _HEAD.pack(self.base_offset, length, self.leader_epoch, self.magic, crc) + body + payload

    def but(self, **changes: Any) -> Batch:
        return replace(self, **changes)


def old_message(value: bytes, magic: int = 1, at: int = 0) -> bytes:
    """A message as Kafka 0.10 (magic 1) or before (magic 0) wrote it."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", at) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def summary(data: bytes) -> list[dict[str, Any]]:
    """What is in a fetch's bytes, batch by batch."""
    return list(_batches(data))


def _batches(data: bytes) -> Iterator[dict[str, Any]]:
    at = 0
    while len(data) - at >= _HEAD.size + _BODY.size:
        base, length, epoch, magic, crc = _HEAD.unpack_from(data, at)
        end = at + 12 + length
        if end > len(data):
            break
        (attributes, last, first_time, last_time, producer, producer_epoch, sequence, count) = _BODY.unpack_from(
            data, at + _HEAD.size
        )
        found = {
            "base_offset": base, "last_offset": base + last, "leader_epoch": epoch, "magic": magic, "count": count,
            "codec": _CODECS[attributes & 7], "attributes": attributes, "base_timestamp": first_time,
            "max_timestamp": last_time, "producer_id": producer, "producer_epoch": producer_epoch,
            "base_sequence": sequence, "crc_is_right": crc32c(data[at + _HEAD.size : end]) == crc,
        }  # fmt: skip
        payload = data[at + _HEAD.size + _BODY.size : end]
        if attributes & 7 == GZIP:
            payload = gzip.decompress(payload)
        if attributes & 7 in (0, GZIP):
            found["records"] = [_shown(row) for row in _records(payload, count)]
        if attributes & CONTROL:
            found["records"] = [_marker(row) for row in _records(payload, count)]
        yield found
        at = end
    if at < len(data):
        yield {"bytes of an incomplete batch": len(data) - at}


def _shown(row: tuple[int, bytes | None, bytes | None]) -> list[Any]:
    return [row[0], *(_text(part) for part in row[1:])]


def _marker(row: tuple[int, bytes | None, bytes | None]) -> str:
    """A transaction's end; the coordinator's epoch, which may differ, is left out."""
    _, key, value = row
    if key is None or value is None or len(key) != _MARKER_KEY.size or len(value) != _MARKER_VALUE.size:
        return f"key {key!r}, value {value!r}"
    key_version, kind = _MARKER_KEY.unpack(key)
    value_version, _ = _MARKER_VALUE.unpack(value)
    return f"{'COMMIT' if kind else 'ABORT'}, versions {key_version} and {value_version}"


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    return data.decode("latin-1") if len(data) <= 40 else f"{len(data)} bytes, the first {data[:8]!r}"


def _records(payload: bytes, count: int) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    at = 0
    for _ in range(count):
        size, at = _read_varint(payload, at)
        end = at + size
        at += 1
        _, at = _read_varint(payload, at)
        delta, at = _read_varint(payload, at)
        key, at = _read_bytes(payload, at)
        value, at = _read_bytes(payload, at)
        yield delta, key, value
        at = end


def _record(delta: int, time_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0" + _varint(time_delta) + _varint(delta) + _sized(key) + _sized(value) + _varint(0)
    return _varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _read_varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)
