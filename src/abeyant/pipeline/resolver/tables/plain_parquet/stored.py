"""A Parquet file on this machine's paths, or on a store that Spark's Python workers reach as Spark does.

The byte ranges that are needed of a remote file are fetched beforehand (`hold`): Arrow reads a column in many small
reads, and each would be a request.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.remote_files import AZURE, HDFS, S3A, Reach, reach_of, system_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Stored", "hold", "opened", "stored"]

_REMOTE: Final = (S3A, HDFS, *AZURE)
_GIVEN: Final = {"access_key", "anonymous", "account_key", "sas_token", "client_secret", "addresses"}
_TAIL: Final = 1 << 16
_GAP: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """A file, and how workers open it."""

    name: str
    """A path, or a URI."""
    reach: Reach | None = field(default=None, repr=False)
    """How to reach a URI; None for a path. It may hold a key."""

    def __str__(self) -> str:
        return self.name


def stored(spark: SparkSession, uris: Iterable[str]) -> list[Stored] | None:
    """Return the files at these URIs, as Hadoop writes URIs; None unless it is certain that workers can open all files.

    Workers can open paths of this machine, and files of a store whose credentials are in the session's configuration.
    Credentials from elsewhere, such as the driver's environment, may be missing in workers.
    """
    reaches: dict[str, Reach | None] = {}
    files: list[Stored] = []
    for uri in uris:
        parts = urlsplit(uri)
        path = unquote(parts.path)
        if parts.scheme == "file" and not parts.netloc:
            files.append(Stored(path))
            continue
        root = f"{parts.scheme}://{parts.netloc}"
        if root not in reaches:
            reaches[root] = _reach(spark, f"{root}/")
        reach = reaches[root]
        if reach is None:
            return None
        files.append(Stored(root + path, reach))
    return files


def _reach(spark: SparkSession, root: str) -> Reach | None:
    if not root.startswith(_REMOTE):
        return None
    try:
        reach = reach_of(spark, root)
    except AbeyantError:  # Spark may still be able to read it
        return None
    return reach if any(name in _GIVEN for name, _ in reach) else None


def opened(file: Stored) -> Any:
    """Open a file for Arrow. The result is also a context manager. Raises `OSError`."""
    if file.reach is None:
        return pa.OSFile(file.name, "rb")
    system, name = system_of(file.name, file.reach)
    return _RangedFile(system.open_input_file(name))


def hold(source: Any, ranges: Iterable[tuple[int, int]]) -> None:
    """Fetch the byte ranges [begin, end) of an open file into memory, and drop the ranges that were held before.

    Ranges at most 1 MiB apart are fetched by one request. Memory: their bytes. For a local file it does nothing.
    """
    if isinstance(source, _RangedFile):
        source.hold(ranges)


class _RangedFile(io.RawIOBase):
    """A remote file that keeps the ranges fetched by `hold`, and always the last 64 KiB, in memory."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._size: Final = int(raw.seek(0, os.SEEK_END))
        self._at = 0
        self._tail: Final = self._fetched(max(self._size - _TAIL, 0), self._size)
        self._held: list[tuple[int, bytes]] = []

    def hold(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch these ranges, and drop the ranges that were held before."""
        self._held = []
        spans: list[tuple[int, int]] = []
        for begin, end in sorted(ranges):
            if spans and begin - spans[-1][1] <= _GAP:
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((begin, end))
        for begin, end in spans:
            self._held.append(self._fetched(begin, end))

    def _fetched(self, begin: int, end: int) -> tuple[int, bytes]:
        self._raw.seek(begin)
        parts, remaining = [], end - begin
        while remaining and (part := self._raw.read(remaining)):
            parts.append(part)
            remaining -= len(part)
        return begin, b"".join(parts)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        begin, end = self._at, self._size if size < 0 else min(self._at + size, self._size)
        self._at = max(begin, end)
        for start, data in (*self._held, self._tail):
            if start <= begin and end <= start + len(data):
                return data[begin - start : end - start]
        return self._fetched(begin, end)[1] if begin < end else b""

    def close(self) -> None:
        self._held = []
        self._raw.close()
        super().close()
