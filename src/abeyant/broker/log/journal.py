"""A small persistent key-value store: names and JSON values in one append-only file.

A line is a CRC, a name and its value. A later line replaces earlier lines of the same name. A torn last line is
ignored; any other damaged line is an error. The file is rewritten at each start, and when most lines are replaced.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.files import json_line, read_json_line, replace_file, storage_errors

_SPARE_LINES = 1_000
_SPARE_RATIO = 4


class Journal:
    """A key-value store in a file, for the controller's topics, partitions and settings. Use from one thread."""

    def __init__(self, path: Path) -> None:
        """Read the file if it exists, and rewrite it without replaced lines. Raises StorageError."""
        self._path = path
        self._values: dict[str, Any] = {}
        self._fd = -1
        self._lines = 0
        with storage_errors("open", path):
            self._read(path.read_bytes() if path.exists() else b"")
            self._rewrite()

    def _rewrite(self) -> None:
        content = b"".join(json_line([name, value]) for name, value in self._values.items())
        replace_file(self._path, content, durable=True)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._lines = len(self._values)

    def _read(self, content: bytes) -> None:
        """Read every line. Raises StorageError for a damaged line that is not the last."""
        damaged = 0
        for number, line in enumerate(content.split(b"\n")[:-1], 1):
            entry = read_json_line(line)
            if entry is None:
                damaged = damaged or number
            elif damaged:  # ignoring the line would lose topics and delete their records
                raise StorageError(
                    f"{self._path} is damaged at line {damaged}, and more lines follow; nothing was deleted: put back a"
                    " copy of that file, or name another data directory"
                )
            else:
                self._set(*entry)

    def _set(self, name: str, value: Any) -> None:
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or `default` if the name has none."""
        return self._values.get(name, default)

    def items(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield each name that begins with `prefix`, with its value, oldest name first."""
        return iter([(name, value) for name, value in self._values.items() if name.startswith(prefix)])

    def put(self, name: str, value: Any) -> None:
        """Set the value of a name, or remove it with None. Once this returns, the value survives kill -9.

        Raises StorageError if the file cannot be written; the old value then stays.
        """
        line = json_line([name, value])
        size = os.fstat(self._fd).st_size
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError("the disk is full")  # lines after a partial one could not be read
        except OSError as error:
            os.ftruncate(self._fd, size)
            raise StorageError(f"cannot write {self._path}: {error.strerror or error}") from error
        self._set(name, value)
        self._lines += 1
        if self._lines > _SPARE_LINES + _SPARE_RATIO * len(self._values):
            with contextlib.suppress(StorageError):  # the disk may be full, and the longer file is valid too
                self._rewrite()

    def close(self) -> None:
        """Flush the file to the disk, and close it."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1
