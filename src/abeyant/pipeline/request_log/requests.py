"""Read the requests in one chunk of a log. Lines that container runtimes or log shippers cut are joined first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar
from zoneinfo import ZoneInfo

from abeyant.pipeline.request_log.files import MAX_LINE_BYTES, Chunk, DamagedFileError, read_lines
from abeyant.pipeline.request_log.joining import documents, open_document, open_parts, whole_lines
from abeyant.pipeline.request_log.line import BadLineError
from abeyant.pipeline.request_log.wrapping import each_request

if TYPE_CHECKING:
    from abeyant.pipeline.request_log.typed import TypedParser

__all__ = ["numbered_lines", "read_requests", "typed_parser"]

# The parts of a line follow one another, but for a few lines of the other stream.
_LOOK_BACK_BYTES: Final = 1 << 20
# Kafka's own lines begin like this; parts of lines and documents do not.
_UNCUT: Final = b"[2"

T = TypeVar("T")


def numbered_lines(chunk: Chunk) -> Iterator[tuple[int, bytes | Exception]]:
    """Yield the number and content of each line that begins in a chunk, and the error if the rest cannot be read.

    A line that is cut into parts belongs to the chunk with its first part. Later parts may be beyond the chunk's end.
    """
    file, number = chunk.file, chunk.lines_before
    before = Chunk(file, max(chunk.start - _LOOK_BACK_BYTES, 0), chunk.start)
    after = Chunk(file, chunk.end, min(chunk.end + MAX_LINE_BYTES, file.size))
    try:
        earlier = list(read_lines(before)) if chunk.start and not file.compressed else []
        parts, document = open_parts(earlier), open_document(earlier)
        del earlier
        line: bytes | Exception
        lines: Iterator[tuple[int, bytes | Exception]] = enumerate(read_lines(chunk), number + 1)
        if not parts and document is None:
            for number, line in lines:
                if isinstance(line, Exception) or not line.startswith(_UNCUT):
                    lines = chain([(number, line)], lines)
                    break
                yield number, line
            else:
                return
        rest = read_lines(after) if chunk.end < file.size else ()
        for number, line in documents(whole_lines(lines, parts, rest), document and document[0], read_lines(after)):
            yield number, line
    except DamagedFileError as error:
        yield number + 1, error


def read_requests(
    chunk: Chunk, fast: Callable[[bytes], T | None] | None, slow: Callable[[bytes], T]
) -> Iterator[tuple[int, int, bytes, T | Exception]]:
    """Yield (line number, place, line, result or error) for each request.

    `fast` returns None for a line that it cannot read. `slow` then reads the line, or raises `BadLineError`; without
    `fast`, it reads all lines. The place is the request's index in a line with several requests, else 0. Blank lines
    are skipped.
    """
    for number, line in numbered_lines(chunk):
        if isinstance(line, Exception):
            yield number, 0, b"", line
        elif fast is not None and (result := fast(line)) is not None:
            yield number, 0, line, result
        elif line.strip():
            yield from ((number, *item) for item in _read_each(line, slow))


def _read_each(line: bytes, slow: Callable[[bytes], T]) -> Iterator[tuple[int, bytes, T | Exception]]:
    try:
        yield 0, line, slow(line)
    except BadLineError as error:
        parts = each_request(line)
        if len(parts) == 1:
            yield 0, line, error
            return
        for place, part in enumerate(parts):
            try:
                yield place, part, slow(part)
            except BadLineError as part_error:
                yield place, part, part_error


def typed_parser(zone: ZoneInfo, topics: Mapping[str, str]) -> TypedParser | None:
    """Return the fast parser for common lines; None on a Connect server, whose Python may lack msgspec."""
    try:
        from abeyant.pipeline.request_log.typed import TypedParser
    except ModuleNotFoundError as error:
        if error.name != "msgspec":
            raise
        return None
    return TypedParser(zone, topics)
