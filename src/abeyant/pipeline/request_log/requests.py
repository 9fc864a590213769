"""The requests of one piece of a log, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from abeyant.pipeline.request_log.files import Chunk, DamagedFileError, read_lines
from abeyant.pipeline.request_log.line import ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.wrapping import whole_lines

__all__ = ["requests"]


def requests(chunk: Chunk, zone: ZoneInfo) -> Iterator[tuple[int, bytes, ApiRequest | Exception]]:
    """Yield each line's number, itself, and the request that it is, or why it cannot be read."""
    parser = LineParser(zone)
    number = chunk.lines_before
    lines = whole_lines(enumerate(read_lines(chunk), number + 1))
    while True:
        try:
            number, line = next(lines)
        except StopIteration:
            return
        except DamagedFileError as error:
            yield number + 1, b"", error
            return
        if isinstance(line, Exception):
            yield number, b"", line
        elif line.strip():
            try:
                yield number, line, parser.parse(line)
            except BadLineError as error:
                yield number, line, error
