"""A record batch of Kafka's format 2: its header, and its bytes as they are sent and stored.

    offset  0  base offset      int64 |  set by the leader: outside the CRC
            8  length           int32 |  bytes after this field
           12  leader epoch     int32 |  set by the leader: outside the CRC
           16  magic            int8     2
           17  CRC-32C          uint32   of all that follows
           21  attributes       int16    compression 0-2, timestamp type 3, transactional 4, control 5, horizon 6
           23  last offset delta int32
           27  base timestamp   int64 ms
           35  max timestamp    int64 ms
           43  producer id      int64, producer epoch int16, base sequence int32
           57  record count     int32
           61  the records, compressed as one

(Kafka's protocol guide, "Record Batch".)
"""

from __future__ import annotations

import struct
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

from abeyant.broker.log.compression import NONE, compress, decompress
from abeyant.broker.log.errors import CorruptRecordError, InvalidRecordError
from abeyant.broker.log.records import Record, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEADER_SIZE = 61
LENGTH_END = 12  # the length field counts what comes after it
NO_TIMESTAMP = -1
NO_PRODUCER = -1
NO_SEQUENCE = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PLACE = struct.Struct(">qii")  # base offset, length, leader epoch
_LENGTH = struct.Struct(">i")
_TIMES = struct.Struct(">qq")
_CRC_FIRST = 21  # the CRC covers the batch from here on
_MAGIC = 16
_SMALLEST = 14  # bytes: Kafka rejects a shorter record of any format
_LARGEST_SEQUENCE = (1 << 31) - 1

COMPRESSION = 0x07
APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
CONTROL = 0x20
_DELETE_HORIZON = 0x40


class Batch:
    """One batch: its bytes, and the fields of its header. Immutable once the leader has set its offset and epoch.

    `size` is in bytes, header included. `last_offset` is the offset of the last record (compaction may remove the
    record, but keeps `last_offset`). `next_offset` is `last_offset + 1`.
    """

    __slots__ = (
        "attributes", "base_offset", "base_sequence", "base_timestamp", "crc", "data", "last_offset",
        "last_offset_delta", "leader_epoch", "max_timestamp", "next_offset", "producer_epoch", "producer_id",
        "record_count", "size",
    )  # fmt: skip

    def __init__(self, data: bytes) -> None:
        """Read the header of `data`, one whole batch. Raises CorruptRecordError for another format or length."""
        if len(data) < HEADER_SIZE or data[_MAGIC] != 2:
            raise CorruptRecordError(
                f"Not a record batch of format 2: {len(data)} bytes that begin with {data[:24].hex()}"
            )
        self.data = data
        (
            self.base_offset,
            length,
            self.leader_epoch,
            _,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = _HEADER.unpack_from(data)
        self.size = size = len(data)
        if length + LENGTH_END != size:
            raise CorruptRecordError(f"A record batch of {size} bytes declares a size of {length + LENGTH_END}")
        self.last_offset: int = self.base_offset + self.last_offset_delta
        self.next_offset = self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        """Return the last record's sequence number, which wraps to 0 after 2^31 - 1; -1 if the batch has none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        sequence: int = self.base_sequence + self.last_offset_delta
        return sequence if sequence <= _LARGEST_SEQUENCE else sequence - _LARGEST_SEQUENCE - 1

    @property
    def compression(self) -> int:
        """Return the number of the batch's codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        codec: int = self.attributes & COMPRESSION
        return codec

    @property
    def timestamp_is_append_time(self) -> bool:
        """Return whether the timestamp type is LogAppendTime: each record then has the timestamp `max_timestamp`."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Return whether the batch is part of a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Return whether the batch holds a transaction marker instead of data."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """Return the time (ms) from which compaction may remove the batch's tombstones or marker; None if not set."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None

    @property
    def records(self) -> memoryview:
        """Return the batch's record bytes as stored, compressed or not."""
        return memoryview(self.data)[HEADER_SIZE:]

    def payload(self) -> bytes:
        """Return the batch's record bytes, decompressed. Raises UndecodableError."""
        codec: int = self.attributes & COMPRESSION
        return self.data[HEADER_SIZE:] if codec == NONE else decompress(codec, self.records)

    def crc_is_valid(self) -> bool:
        """Return whether the CRC in the header matches the bytes. The CPU's CRC instruction checks some 10 GB/s."""
        crc: int = self.crc
        return crc_of(self.data) == crc

    def at_offset(self, base_offset: int, leader_epoch: int) -> Batch:
        """Return a copy with this base offset and leader epoch. The copy's CRC is valid: it does not cover them."""
        placed = Batch(self.data)
        placed.place(base_offset, leader_epoch)
        return placed

    def place(self, base_offset: int, leader_epoch: int) -> None:
        """Set the base offset and leader epoch in place, before the batch is shared. The CRC does not cover them."""
        head = _PLACE.pack(base_offset, self.size - LENGTH_END, leader_epoch)
        self.data = b"".join((head, memoryview(self.data)[_PLACE.size :]))
        self.base_offset, self.leader_epoch = base_offset, leader_epoch
        self.last_offset = last = base_offset + self.last_offset_delta
        self.next_offset = last + 1

    def with_timestamp(self, max_timestamp: int, *, append_time: bool) -> Batch:
        """Return a batch with this greatest timestamp and this timestamp type; `self` if neither differs."""
        if max_timestamp == self.max_timestamp and append_time == bool(self.attributes & APPEND_TIME):
            return self
        changed = bytearray(self.data)
        attributes = self.attributes & ~APPEND_TIME | (APPEND_TIME if append_time else 0)
        struct.pack_into(">h", changed, _CRC_FIRST, attributes)
        _TIMES.pack_into(changed, 27, self.base_timestamp, max_timestamp)
        struct.pack_into(">I", changed, 17, crc_of(changed))
        return Batch(bytes(changed))

    def with_records(self, records: list[Record], codec: int, horizon: int | None = None) -> Batch:
        """Return a batch with these records, compressed with `codec`, and the other header fields of this batch.

        `horizon` is the new batch's delete horizon (ms), None for none.
        """
        base_timestamp = self.base_timestamp if horizon is None else horizon
        flag = 0 if horizon is None else _DELETE_HORIZON
        return make_batch(
            compress(codec, encode(records, self.base_offset, base_timestamp)), record_count=len(records),
            base_offset=self.base_offset, last_offset_delta=self.last_offset_delta, leader_epoch=self.leader_epoch,
            attributes=self.attributes & (APPEND_TIME | _TRANSACTIONAL | CONTROL) | codec | flag,
            base_timestamp=base_timestamp,
            max_timestamp=max((record.timestamp for record in records), default=self.max_timestamp),
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=self.base_sequence,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"<Batch {self.base_offset}-{self.last_offset} epoch {self.leader_epoch},"
            f" {self.record_count} records, {self.size} bytes>"
        )


def crc_of(data: bytes | bytearray) -> int:
    """Return the CRC-32C of a batch's bytes (Castagnoli's polynomial)."""
    return _crc32c()(memoryview(data)[_CRC_FIRST:])


@cache
def _crc32c() -> Callable[[memoryview], int]:
    """Return the function `crc32c`, loaded from the compiled module of the package crc32c, without its `__init__`.

    The package's `__init__` also looks up its version and loads a command line, which would take most of the time
    until a broker's first record.
    """
    package = find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        from crc32c import crc32c

        return crc32c
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[memoryview], int] = module.crc32c
    return function


def make_batch(
    records: bytes,
    *,
    record_count: int,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    leader_epoch: int = -1,
    attributes: int = 0,
    base_timestamp: int = NO_TIMESTAMP,
    max_timestamp: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> Batch:
    """Return a batch of the encoded `records`, which the caller has compressed with the codec in `attributes`."""
    delta = record_count - 1 if last_offset_delta is None else last_offset_delta
    data = bytearray(HEADER_SIZE + len(records))
    _HEADER.pack_into(
        data, 0, base_offset, len(data) - LENGTH_END, leader_epoch, 2, 0, attributes, delta, base_timestamp,
        max_timestamp, producer_id, producer_epoch, base_sequence, record_count,
    )  # fmt: skip
    data[HEADER_SIZE:] = records
    struct.pack_into(">I", data, 17, crc_of(data))
    return Batch(bytes(data))


def split(records: bytes) -> list[Batch]:
    """Return the complete batches in `records`. Ignore an incomplete batch at the end, as Kafka does.

    Raises CorruptRecordError for bytes that are not a batch, and InvalidRecordError for a batch in format 0 or 1,
    which Kafka 4 no longer accepts.
    """
    size = len(records)
    if size >= HEADER_SIZE and records[_MAGIC] == 2 and _LENGTH.unpack_from(records, 8)[0] + LENGTH_END == size:
        return [Batch(records)]  # one batch, as all producers send
    return list(_each_batch(records))


def _each_batch(records: bytes) -> Iterator[Batch]:
    position = 0
    while len(records) - position >= _MAGIC + 1:
        length = _LENGTH.unpack_from(records, position + 8)[0]
        if length < _SMALLEST:
            raise CorruptRecordError(f"Record size {length} is less than the minimum record overhead ({_SMALLEST})")
        magic = records[position + _MAGIC]
        if magic > 2:
            raise CorruptRecordError(f"Invalid magic found in record: {magic}")
        end = position + LENGTH_END + length
        if end > len(records):
            return
        if magic != 2:
            raise InvalidRecordError(f"Record batches must have format 2, not {magic}")
        if length < HEADER_SIZE - LENGTH_END:
            raise CorruptRecordError(f"A record batch of {length} bytes is shorter than its header")
        yield Batch(records if position == 0 and end == len(records) else records[position:end])
        position = end
