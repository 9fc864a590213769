"""The lines of one chunk of a log, joined where a container runtime cut them, and the requests that they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zoneinfo import ZoneInfo

from abeyant.pipeline.request_log.files import MAX_LINE_BYTES, Chunk, DamagedFileError, read_lines
from abeyant.pipeline.request_log.line import ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.wrapping import open_parts, whole_lines

__all__ = ["numbered_lines", "requests"]

# The parts of a line follow one another, but for a few lines of the other stream.
_LOOK_BACK_BYTES: Final = 1 << 20


def numbered_lines(chunk: Chunk) -> Iterator[tuple[int, bytes | Exception]]:
    """Yield the number and content of each line that begins in a chunk, and why the rest cannot be read.

    A line that is cut into parts belongs to the chunk with its first part, and is read on beyond the chunk's end.
    """
    file, number = chunk.file, chunk.lines_before
    before = Chunk(file, max(chunk.start - _LOOK_BACK_BYTES, 0), chunk.start)
    after = Chunk(file, chunk.end, min(chunk.end + MAX_LINE_BYTES, file.size))
    try:
        begun = open_parts(read_lines(before)) if chunk.start and not file.compressed else ()
        rest = read_lines(after) if chunk.end < file.size else ()
        lines = whole_lines(enumerate(read_lines(chunk), number + 1), begun, rest)
        for number, line in lines:
            yield number, line
    except DamagedFileError as error:
        yield number + 1, error


def requests(chunk: Chunk, zone: ZoneInfo) -> Iterator[tuple[int, bytes, ApiRequest | Exception]]:
    """Yield each line's number, itself, and the request that it is, or why it cannot be read."""
    parser = LineParser(zone)
    for number, line in numbered_lines(chunk):
        if isinstance(line, Exception):
            yield number, b"", line
        elif line.strip():
            try:
                yield number, line, parser.parse(line)
            except BadLineError as error:
                yield number, line, error
