"""Write and read Kafka's primitive types as bytes, for a client that costs next to nothing."""

from __future__ import annotations

import struct
from typing import Self


class Writer:
    """Writer of Kafka's primitive types into bytes."""

    def __init__(self, layout: str = "", *values: int) -> None:
        """Start with these numbers; `layout` is a format of `struct`, without the byte order."""
        self._data = bytearray(struct.pack(f">{layout}", *values))

    def numbers(self, layout: str, *values: int | bytes) -> Self:
        """Append numbers; `layout` is a format of `struct`, without the byte order."""
        self._data += struct.pack(f">{layout}", *values)
        return self

    def text(self, text: str | None) -> Self:
        """Append a string; None is null."""
        if text is None:
            self._data += b"\xff\xff"
            return self
        data = text.encode()
        self._data += struct.pack(">h", len(data)) + data
        return self

    def data(self, data: bytes) -> Self:
        """Append bytes, after their length."""
        self._data += struct.pack(">i", len(data)) + data
        return self

    def done(self) -> bytes:
        """Return all bytes that were written."""
        return bytes(self._data)


class Reader:
    """Reader of Kafka's primitive types from bytes. Raises struct.error or UnicodeDecodeError for other bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, code: str) -> int:
        """Read a number; `code` is a format character of `struct`."""
        (value,) = struct.unpack_from(f">{code}", self._data, self._position)
        self._position += struct.calcsize(code)
        return int(value)

    def text(self) -> str:
        """Read a string that is not null."""
        return self.nullable() or ""

    def nullable(self) -> str | None:
        """Read a string that may be null; return None for null."""
        size = self.number("h")
        return None if size < 0 else self._take(size).decode()

    def data(self) -> bytes:
        """Read bytes, after their length."""
        return self._take(max(self.number("i"), 0))

    def _take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) < size:
            raise struct.error(f"the length is {size} bytes, and only {len(taken)} are there")
        self._position += size
        return taken
