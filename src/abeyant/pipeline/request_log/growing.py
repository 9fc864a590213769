"""Read a growing log: how far each file has been read, and the whole lines that were added since.

A file is identified by its instance and its first line. So a rotated file (renamed, compressed, or copied and
truncated) is still the same file, and a new file under the old name is another file. A line without a line break is
left for a later read. So are the parts of a line that a container runtime cut, until the last part has been written.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

import pyarrow as pa

from abeyant.pipeline.request_log.brokers import by_broker
from abeyant.pipeline.request_log.files import (
    Chunk,
    LogFile,
    Paths,
    chunks,
    find_logs,
    open_text,
)
from abeyant.pipeline.request_log.joining import open_document, open_parts
from abeyant.pipeline.request_log.wrapping import MARKER

__all__ = ["BATCH_BYTES", "ENDED", "GROWING", "GrowingLog", "Offsets"]

GROWING: Final = pa.schema(
    {
        **dict.fromkeys(("instance", "kind", "outcome", "client_id"), pa.string()),
        **dict.fromkeys(("start_us", "wait_us", "size_bytes", "error_code"), pa.int64()),
        **dict.fromkeys(("local_ms", "send_ms", "throttle_ms"), pa.float64()),
        "keys": pa.list_(pa.string()),
    }
)
"""Schema of the operations that analyses read: operations with a known wait only."""

Offsets = dict[str, int]
"""Bytes read of each file, or `ENDED`. Keys are file names as `_named` returns them, which survive a rotation."""

ENDED: Final = -1
"""The offset of a compressed file that has been read. It is read as a whole, as it does not grow."""

T = TypeVar("T")

BATCH_BYTES: Final = 256 << 20
"""Approximate bytes of text that a batch reads while it catches up."""

_HEAD_BYTES: Final = 4096
_TAIL_BYTES: Final = 1 << 20
_INDENTED: Final = re.compile(rb"\s*[\[{]{1,2}\r?\n")


class GrowingLog:
    """A log that brokers still write. Each call lists its files anew. Compressed files are assumed to be complete."""

    def __init__(self, paths: Paths, instance: str | Callable[[str], str] | None = None) -> None:
        self._paths, self._instance = paths, instance

    def latest(self, start: Mapping[str, int], *, limit: int | None = BATCH_BYTES) -> tuple[Offsets, bool]:
        """Return the next batch's end offsets, about `limit` bytes after `start`, and whether they cover the whole log.

        Each instance gets a share of the limit, in proportion to its unread bytes, and uses it for its oldest files
        first. So all instances are read up to about the same time. None: no limit.
        """
        files = self._files()
        remaining = {name: self._more(file, start.get(name, 0)) for name, file in files.items()}
        total = sum(remaining.values())
        offsets, is_all = dict(start), True
        for instance in sorted({file.instance for file in files.values()}):
            names = [name for name, file in files.items() if file.instance == instance]
            share = None if limit is None or total <= limit else limit * sum(remaining[name] for name in names) // total
            for name in names:
                if not remaining[name]:
                    continue
                if share is not None and share <= 0:
                    is_all = False
                    break
                size = remaining[name] if share is None else min(remaining[name], share)
                is_all = is_all and size == remaining[name]
                share = None if share is None else share - remaining[name]
                file, at = files[name], start.get(name, 0)
                offsets[name] = ENDED if file.compressed else self._whole_lines(file, at, at + size)
        return offsets, is_all

    def pieces(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[tuple[str, Chunk]]:
        """Return the chunks from `start` to `end`, each with its file's key in the offsets."""
        files = self._files()
        pieces: list[tuple[str, Chunk]] = []
        for name, upto in end.items():
            at = start.get(name, 0)
            if at == upto or name not in files:
                continue
            file = files[name]
            if file.compressed:  # it may have been plain when it was read up to here
                pieces.append((name, Chunk(file, at, file.size)))
            else:  # nothing beyond the end is looked at: that is read later
                part = replace(file, size=file.size if upto == ENDED else upto)
                pieces += [
                    (name, replace(chunk, start=max(chunk.start, at))) for chunk in chunks([part]) if chunk.end > at
                ]
        return pieces

    def read(self, name: str, piece: Chunk, work: Callable[[Chunk], list[T]]) -> list[T]:
        """Return `work(piece)` for a chunk of the file `name`; [] if the file no longer exists.

        The file may be rotated meanwhile. Then find it again and retry, until its path is the same before and after.
        """
        while True:
            if _name(piece.file) == name:
                result = work(piece)
                if _name(piece.file) == name:
                    return result
            file = self._files().get(name)
            if file is None:
                return []
            if file.compressed and not piece.file.compressed:
                with tempfile.NamedTemporaryFile() as plain, open_text(file) as text:
                    while plain.tell() < piece.end and (part := text.read(min(_TAIL_BYTES, piece.end - plain.tell()))):
                        plain.write(part)
                    plain.flush()
                    return work(replace(piece, file=replace(piece.file, path=plain.name)))
            piece = replace(piece, file=replace(piece.file, path=file.path))

    def _files(self) -> dict[str, LogFile]:
        """Return the files by name (`_named`), sorted by their first lines: an instance's oldest files come first."""
        files: dict[str, tuple[bytes, LogFile]] = {}
        log_files = find_logs(self._paths, instance=self._instance, awaited=lambda sentence: None)
        for file in log_files if self._instance is not None else by_broker(log_files):
            head = _first_line(file)
            if head is None:
                continue
            name = _named(file, head)
            previous = files.get(name)
            # While a file is copied or compressed it exists twice: the plain one, or else the longer one, is complete.
            if previous is None or (not file.compressed, file.size) > (not previous[1].compressed, previous[1].size):
                files[name] = head, file
        return {name: file for name, (_, file) in sorted(files.items(), key=lambda item: item[1][0])}

    @staticmethod
    def _more(file: LogFile, at: int) -> int:
        if at == ENDED:
            return 0
        return file.size * 20 if file.compressed else max(file.size - at, 0)

    @staticmethod
    def _whole_lines(file: LogFile, start: int, end: int) -> int:
        """Return the offset after the last complete line between `start` and `end`."""
        step = _TAIL_BYTES
        with open(file.path, "rb") as stream:
            while True:
                begin = max(start, end - step)
                stream.seek(begin)
                tail = stream.read(end - begin)
                lines = tail[: tail.rfind(b"\n") + 1].splitlines(keepends=True)
                while lines and open_parts(line.rstrip(b"\r\n") for line in lines[-64:]):
                    lines.pop()
                while (document := open_document(line.rstrip(b"\r\n") for line in lines)) is not None:
                    del lines[-document[1] :]
                if len(lines) > 1 or begin == start:
                    return begin + sum(map(len, lines))
                step *= 8


def _named(file: LogFile, head: bytes) -> str:
    return f"{file.folder}/{hashlib.sha256(head).hexdigest()[:24]}"


def _name(file: LogFile) -> str | None:
    head = _first_line(file)
    return None if head is None else _named(file, head)


def _first_line(file: LogFile) -> bytes | None:
    """Return a file's first line, at most 4 KiB, which identifies the file; None if the line is not complete yet.

    Indented documents all begin with the same line: in that case, return all text up to the first request's line.
    """
    try:
        with open_text(file) as text:
            head = text.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return None  # it was removed, or is being written
    begin = head.find(MARKER) if _INDENTED.match(head) else 0
    end = head.find(b"\n", begin) + 1 if begin >= 0 else 0
    return head[:end] if end else head if len(head) == _HEAD_BYTES else None
