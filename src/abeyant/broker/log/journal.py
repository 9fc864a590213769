"""A small table that survives its process: names and JSON values, in one file that lines are added to.

A line is a CRC, a name and its value. Later lines replace earlier ones; one that was torn ends the file, and one in its
middle that is damaged is an error. When most lines were replaced, and at the next start, the file is written anew with
what counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.files import replace_file

_SPARE_LINES = 1_000
_SPARE_RATIO = 4


class Journal:
    """The controller's state: topics, partitions, settings. Use from one thread."""

    def __init__(self, path: Path) -> None:
        """Read the file, if there is one, and write it anew. Raises StorageError."""
        self._path = path
        self._values: dict[str, Any] = {}
        self._fd = -1
        self._lines = 0
        try:
            self._read(path.read_bytes() if path.exists() else b"")
            self._write_anew()
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror or error}") from error

    def _write_anew(self) -> None:
        content = b"".join(_line(name, value) for name, value in self._values.items())
        replace_file(self._path, content, durable=True)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._lines = len(self._values)

    def _read(self, content: bytes) -> None:
        """Take over every line. Raises StorageError where one is damaged that is not the last."""
        damaged = 0
        for number, line in enumerate(content.split(b"\n")[:-1], 1):
            said = _said(line)
            if said is None:
                damaged = damaged or number
            elif damaged:  # no end that was torn off: to go on would forget topics, and so delete their records
                raise StorageError(
                    f"{self._path} is damaged at line {damaged}, and more lines follow; nothing was deleted: put back a"
                    " copy of that file, or name another data directory"
                )
            else:
                self._take(*said)

    def _take(self, name: str, value: Any) -> None:
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or the default."""
        return self._values.get(name, default)

    def items(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the names that begin with `prefix` and their values, oldest first."""
        return iter([(name, value) for name, value in self._values.items() if name.startswith(prefix)])

    def put(self, name: str, value: Any) -> None:
        """Set the value of a name, or with None forget it. When this returns it survives kill -9.

        Raises StorageError: then nothing has changed.
        """
        line = _line(name, value)
        size = os.fstat(self._fd).st_size
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError("the disk is full")  # a line in part: what comes after it would not be read
        except OSError as error:
            os.ftruncate(self._fd, size)
            raise StorageError(f"cannot write {self._path}: {error.strerror or error}") from error
        self._take(name, value)
        self._lines += 1
        if self._lines > _SPARE_LINES + _SPARE_RATIO * len(self._values):
            with contextlib.suppress(StorageError):  # a full disk: the longer file is right too
                self._write_anew()

    def close(self) -> None:
        """Flush the file to the disk, and close it."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1


def _said(line: bytes) -> tuple[str, Any] | None:
    """Return a line's name and value; None for a damaged line."""
    try:
        if int(line[:8], 16) != zlib.crc32(line[9:]):
            return None
        name, value = json.loads(line[9:])
    except ValueError:
        return None
    return name, value


def _line(name: str, value: Any) -> bytes:
    text = json.dumps([name, value], separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)
