"""A log's files: segments, their indexes, and small files that are replaced as a whole.

`00000000000000000042.log` holds batches as they are sent, from offset 42 on. This is Kafka's own file format, which
Kafka's `kafka-dump-log.sh` reads. With a valid index file the next start need not read the batches; without one, the
start rebuilds the index from the batches.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import uuid
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from abeyant.broker.log.batch import HEADER_SIZE, LENGTH_END, Batch
from abeyant.broker.log.errors import CorruptRecordError, StorageError
from abeyant.broker.log.segment import Segment

LOG = ".log"
INDEX = ".index"
SNAPSHOT = ".snapshot"
SWAP = ".swap"  # a complete compacted segment, to be renamed
CLEANED = ".cleaned"  # a compacted segment, incomplete
DELETED = ".deleted"
TEMPORARY = ".tmp"

_INDEX_HEADER = struct.Struct(">8sII")  # magic, CRC-32 of the columns, batches
_INDEX_MAGIC = b"ABYINDX1"
_INDEX_START = struct.Struct(">qqq")  # first timestamp (-1 for none), created ms, modified ms
_COLUMNS = 4
_CHUNK = 1 << 22  # bytes read at a time when a segment is recovered


def name_of(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file: the base offset in 20 digits, and `suffix`. Names sort by offset."""
    return f"{base_offset:020d}{suffix}"


def offset_of(path: Path) -> int | None:
    """Return the base offset in a file's name; None if the name does not begin with an offset."""
    stem = path.name.partition(".")[0]
    return int(stem) if len(stem) == 20 and stem.isascii() and stem.isdigit() else None


@contextlib.contextmanager
def storage_errors(action: str, path: Path) -> Iterator[None]:
    """Convert an OSError of the `with` block into a StorageError whose message has `action` and `path`."""
    try:
        yield
    except OSError as error:
        raise _storage_error(action, path, error) from error


def rename_deleted(folder: Path) -> Path:
    """Rename a folder that will be deleted, to a unique name with the suffix `DELETED`. Raises StorageError.

    Return the new path.
    """
    renamed = folder.with_name(f"{folder.name[:200]}.{uuid.uuid4().hex}{DELETED}")  # at most 255 bytes
    with storage_errors("delete", folder):
        folder.rename(renamed)
    return renamed


class FileSegment(Segment):
    """A segment in a file. Its index is in memory: 32 bytes per batch."""

    def __init__(self, path: Path, base_offset: int, now_ms: int) -> None:
        """Open or create the file. Raises StorageError."""
        super().__init__(base_offset, now_ms)
        self.path = path
        self.unflushed = 0  # appends and truncations since the last `flush`
        with storage_errors("open", path):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of the batches [start, end). Raises StorageError."""
        position = self.position(start)
        size = self.position(end) - position
        try:
            data = os.pread(self._fd, size, position)
        except OSError as error:
            raise _storage_error("read", self.path, error) from error
        if len(data) != size:
            raise StorageError(f"cannot read {self.path}: it ends before byte {position + size:,}")
        return data

    def _store(self, batch: Batch) -> None:
        """Append the whole batch or nothing. The batch survives a crash of the process, but not of the machine."""
        data = batch.data
        position = end = self.size
        try:
            while data:
                count = os.pwrite(self._fd, data, end)
                end += count
                data = data[count:]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, position)
            raise _storage_error("write to", self.path, error) from error
        self.unflushed += 1

    def _drop(self, count: int) -> None:
        with storage_errors("truncate", self.path):
            os.ftruncate(self._fd, self.position(count))
        self.unflushed += 1

    def flush(self) -> None:
        """Sync the file to the disk. Raises StorageError."""
        if self.unflushed:
            with storage_errors("flush", self.path):
                os.fdatasync(self._fd)
            self.unflushed = 0

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def discard(self) -> None:
        """Close the file, and delete it."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def save_index(self) -> None:
        """Write the columns of the index to the index file, for the next start. Raises StorageError."""
        first = -1 if self.first_timestamp is None else self.first_timestamp
        content = _INDEX_START.pack(first, self.created_ms, self.modified_ms)
        content += b"".join(_big_endian(column) for column in (self._offsets, self._lasts, self._ends, self._times))
        header = _INDEX_HEADER.pack(_INDEX_MAGIC, zlib.crc32(content), len(self))
        replace_file(self.path.with_suffix(INDEX), header + content)

    def load_index(self, up_to: int) -> bool:
        """Load the index file. Return False unless it is valid, fits the log file's size, and ends below `up_to`."""
        try:
            data = self.path.with_suffix(INDEX).read_bytes()
            magic, crc, count = _INDEX_HEADER.unpack_from(data)
            content = memoryview(data)[_INDEX_HEADER.size :]
            if magic != _INDEX_MAGIC or crc != zlib.crc32(content):
                return False
            first, created, modified = _INDEX_START.unpack_from(content)
            size = os.fstat(self._fd).st_size
        except (OSError, struct.error):
            return False
        columns = content[_INDEX_START.size :]
        width = 8 * count
        if len(columns) != _COLUMNS * width:
            return False
        offsets, lasts, ends, times = (
            _from_big_endian(columns[index * width : (index + 1) * width]) for index in range(_COLUMNS)
        )
        if (ends[-1] if ends else 0) != size or (lasts and lasts[-1] >= up_to):
            return False
        self._offsets, self._lasts, self._ends, self._times = offsets, lasts, ends, times
        self.first_timestamp = None if first < 0 else first
        self.created_ms, self.modified_ms = created, modified
        return True

    def recover(self, expected: int) -> Iterator[Batch]:
        """Yield the file's batches up to one that is torn, out of order, or has a wrong CRC. Truncate the file there.

        `expected` is the lowest offset that the first batch may have. Raises StorageError.
        """
        for batch in self._read_all():
            if batch.base_offset < expected or not batch.crc_is_valid():
                break
            self._note(batch)
            expected = batch.next_offset
            yield batch
        with storage_errors("truncate", self.path):
            os.ftruncate(self._fd, self.size)
            self.modified_ms = int(os.fstat(self._fd).st_mtime * 1000)

    def _read_all(self) -> Iterator[Batch]:
        data = b""
        start = 0  # of `data` in the file
        place = 0  # in `data`, of the next batch
        while True:
            available = len(data) - place
            length = int.from_bytes(data[place + 8 : place + LENGTH_END], signed=True) if available >= LENGTH_END else 0
            size = max(length + LENGTH_END, HEADER_SIZE)
            if available < size:
                start += place
                if os.fstat(self._fd).st_size - start < size:
                    return
                data = data[place:] + os.pread(self._fd, max(size - available, _CHUNK), start + available)
                place = 0
                continue
            try:
                batch = Batch(data[place : place + size])
            except CorruptRecordError:
                return
            yield batch
            place += size


def _big_endian(column: array[int]) -> bytes:
    if sys.byteorder == "little":
        column = array("q", column)
        column.byteswap()
    return column.tobytes()


def _from_big_endian(data: memoryview) -> array[int]:
    column = array("q", bytes(data))
    if sys.byteorder == "little":
        column.byteswap()
    return column


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Replace a small file atomically: after kill -9 it has either its old or its new content.

    With `durable` this also holds after a crash of the machine. Raises StorageError.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise _storage_error("write", path, error) from error


def json_line(value: Any) -> bytes:
    """Return a value as a line: the CRC of its JSON in hexadecimal, and the JSON."""
    text = json.dumps(value, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_json_line(line: bytes) -> Any:
    """Return the value of a line from `json_line`; None if the line is damaged."""
    crc, _, text = line.removesuffix(b"\n").partition(b" ")
    try:
        return json.loads(text) if int(crc, 16) == zlib.crc32(text) else None
    except ValueError:
        return None


def save_json(path: Path, value: Any) -> None:
    """Write a value as JSON with its CRC. Raises StorageError."""
    replace_file(path, json_line(value))


def load_json(path: Path) -> Any:
    """Return the value that `save_json` wrote; None if the file is missing or damaged."""
    try:
        return read_json_line(path.read_bytes())
    except OSError:
        return None


def _storage_error(action: str, path: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot {action} {path}: {error.strerror or error}")
