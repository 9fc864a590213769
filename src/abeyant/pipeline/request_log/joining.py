"""Join lines of a log file that belong together: the parts of a line that a container runtime cut, and indented JSON.

    2024-05-01T10:00:00.2Z stdout P [2024-05-01 12:00:00,123] DEBUG Completed requ    a part, in CRI's format
    2024-05-01T10:00:00.2Z stdout F est:{...} (kafka.request.logger)                  the last part

Docker's json-file driver and log shippers write JSON documents in place of such lines. Independent of files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Any, Final, NamedTuple

from abeyant.pipeline.request_log.wrapping import MARKER, Around, around_of, may_be_request, prefixed

__all__ = ["DOCKER_BYTES", "documents", "open_document", "open_parts", "whole_lines"]

DOCKER_BYTES: Final = 16 << 10
"""The number of bytes after which Docker cuts a line."""
_REPLACED: Final = 16  # more bytes, where it cut a character in two and replaced the halves

_CRI: Final = re.compile(rb"\d\S+ (stdout|stderr) ([PF])(?::\S*)? ")  # further tags may follow the first
_STREAMS: Final = ("stream", "source", "container_id", "partial_id")
_MOST_BYTES: Final = 32 << 20
_MOST_LINES: Final = 1 << 20
_LONGEST_OPEN: Final = 1 << 19


class _Part(NamedTuple):
    """A line that may be one part of a longer line."""

    line: bytes
    """The line; if it is a JSON document, with the member `log` moved to its start."""
    stream: bytes = b""
    begin: int = 0
    """Index in `line` at which the content begins; `end` is the index at which the content ends."""
    end: int = 0
    is_last: bool = True


def whole_lines(
    lines: Iterable[tuple[int, bytes | Exception]],
    begun: Collection[bytes] = (),
    after: Iterable[bytes | Exception] = (),
) -> Iterator[tuple[int, bytes | Exception]]:
    """Join numbered lines that a container runtime cut at 16 KiB; a joined line has the number of its last part.

    CRI marks the last part with F and the others with P; Fluent Bit does the same in a JSON document. Docker's
    json-file ends all parts but the last without a line break, and its Fluentd driver flags the last part. Errors in
    place of a line are passed on. The parts of stdout and stderr are kept apart. A line whose last part is missing is
    yielded at the end, or before the next request of its stream. Streams in `begun` have a line that began before
    `lines`: its remaining parts are dropped. A line that is incomplete at the end is completed from the lines `after`.
    """
    parts: dict[bytes, bytes] = {}  # by stream, with what is before the first of them
    numbers: dict[bytes, int] = {}
    skipped_streams = set(begun)
    number = 0
    for number, line in lines:
        if isinstance(line, Exception) or line.startswith(b"["):  # Kafka's own line, as mostly
            yield number, line
            continue
        part = _part(line, any_open=bool(parts or skipped_streams))
        if part.stream in skipped_streams:
            if part.is_last:
                skipped_streams.remove(part.stream)
            continue
        before = parts.pop(part.stream, None)
        if before is not None and MARKER in before and MARKER in line:  # the next request
            yield numbers[part.stream], before
            before = None
        if not part.is_last:
            parts[part.stream] = part.line[: part.end] if before is None else before + part.line[part.begin : part.end]
            numbers[part.stream] = number
        else:
            yield number, line if before is None else before + part.line[part.begin :]
    following = enumerate(after, number + 1) if parts else iter(())
    while parts and (item := next(following, None)) is not None:
        number, next_line = item
        if isinstance(next_line, Exception) or (part := _part(next_line, any_open=True)).stream not in parts:
            continue
        before = parts.pop(part.stream)
        if MARKER in before and MARKER in next_line:
            yield numbers[part.stream], before
        elif part.is_last:
            yield number, before + part.line[part.begin :]
        else:
            parts[part.stream], numbers[part.stream] = before + part.line[part.begin : part.end], number
    for stream, joined in parts.items():
        yield numbers[stream], joined


def open_parts(lines: Iterable[bytes | Exception]) -> set[bytes]:
    """Return the streams whose last line is a part with further parts to follow."""
    parts = [_part(line, any_open=True) for line in lines if isinstance(line, bytes)]
    return {stream for stream, is_last in {part.stream: part.is_last for part in parts}.items() if not is_last}


class _Open(NamedTuple):
    """An indented JSON document whose end has not been read yet."""

    before: bytes
    """The text before the opening brace: the indentation."""
    begin: int
    """Index of the document's first line among the buffered lines."""
    around: Around | None = None
    """The broker and time in the members before the document's first request; None until that request is joined."""


def documents(
    lines: Iterable[tuple[int, bytes | Exception]],
    begun: bytes | None = None,
    after: Iterable[bytes | Exception] = (),
    *,
    named: bool = True,
) -> Iterator[tuple[int, bytes | Exception]]:
    r"""Join the lines of each indented JSON document that may hold a request; it has the number of its last line.

    A document begins with a line `{` and ends with a line `}` of the same indentation. Its lines are passed on one by
    one if the document holds joined documents (`{"events": [`) or no request, is cut off, or has a line that is not
    JSON. With `named`, an outer document's broker and times, as far as they stand before its first request, are put
    before each inner document in kubectl's form. `begun` is the indentation of a document that began before `lines`
    (`open_document`): its lines are dropped. A document incomplete at the end is completed from the lines `after`.
    """
    opened: list[_Open] = []
    waiting = yield from _documents(lines if begun is None else _behind(iter(lines), begun), opened, named=named)
    if _is_open(opened, waiting):
        is_whole = False
        for number, line in enumerate(after, waiting[-1][0] + 1):
            if isinstance(line, Exception) or not _is_json(line.strip(_AROUND)) or len(waiting) > _MOST_LINES:
                break
            waiting.append((number, line))
            if is_whole := _is_end(line, opened[-1].before):
                break
        begin = opened.pop().begin
        if is_whole and may_be_request(document := _joined(waiting[begin:])):
            opened = _with_around(opened, waiting, begin)
            yield from waiting[:begin]
            yield waiting[-1][0], _prefix(opened) + document if named else document
            waiting = []
    yield from waiting


def open_document(lines: Iterable[bytes | Exception]) -> tuple[bytes, int] | None:
    """Return the indentation of the innermost document that is cut off at the end, and its number of lines in `lines`.

    None if no document is cut off, or if requests in the document were joined: later lines can be read without it.
    """
    opened: list[_Open] = []
    generator = _documents(enumerate(lines), opened, named=False)
    while True:
        try:
            next(generator)
        except StopIteration as end:
            waiting = end.value
            break
    return (opened[-1].before, len(waiting) - opened[-1].begin) if _is_open(opened, waiting) else None


def _is_open(opened: list[_Open], waiting: list[tuple[int, bytes | Exception]]) -> bool:
    """Return whether the innermost document is open, without a request so far, and short enough to be read again.

    The task of the next chunk reads these lines again, to know that its chunk begins inside a document.
    """
    if not opened or opened[-1].around is not None:
        return False
    size = sum(len(line) for _, line in waiting[opened[-1].begin :] if isinstance(line, bytes))
    return size < _LONGEST_OPEN


def _documents(
    lines: Iterable[tuple[int, bytes | Exception]], opened: list[_Open], *, named: bool
) -> Generator[tuple[int, bytes | Exception], None, list[tuple[int, bytes | Exception]]]:
    """Join as `documents` does; leave incomplete documents in `opened`, and return their buffered lines."""
    waiting: list[tuple[int, bytes | Exception]] = []
    size = 0
    for number, line in lines:
        if not opened and (isinstance(line, Exception) or len(line) > _LONGEST_BRACE):  # as mostly
            yield number, line
            continue
        text = b"" if isinstance(line, Exception) else line.strip(_AROUND)
        begins = text in (b"{", b"[{")
        if not begins and not opened:
            yield number, line
            continue
        waiting.append((number, line))
        size += len(text)
        if isinstance(line, Exception) or size > _MOST_BYTES or not _is_json(text):
            yield from waiting
            waiting, size = [], 0
            opened.clear()
        elif begins:
            opened.append(_Open(line[: line.find(b"{")].strip(_BEFORE), len(waiting) - 1))
        elif _is_end(line, opened[-1].before):
            begin = opened.pop().begin
            document = _joined(waiting[begin:])
            if may_be_request(document):
                opened[:] = _with_around(opened, waiting, begin)
                yield from waiting[:begin]
                yield number, _prefix(opened) + document if named else document
                waiting, size = [], 0
            elif not opened:
                yield from waiting
                waiting, size = [], 0
    return waiting


def _behind(lines: Iterator[tuple[int, bytes | Exception]], before: bytes) -> Iterator[tuple[int, bytes | Exception]]:
    """Skip the lines up to the end of the document with indentation `before`; yield the lines after the end."""
    for number, line in lines:
        if isinstance(line, Exception) or not _is_json(line.strip(_AROUND)):
            yield number, line
            break
        if _is_end(line, before):
            break
    yield from lines


def _is_end(line: bytes, before: bytes) -> bool:
    return line.strip(_AROUND) in (b"}", b"}]") and line[: line.find(b"}")] == before


def _with_around(opened: list[_Open], waiting: list[tuple[int, bytes | Exception]], begin: int) -> list[_Open]:
    """Return the open documents around a request that begins at `begin`, each with its broker and time."""
    ends = [*(document.begin for document in opened[1:]), begin]
    return [
        _Open(document.before, 0, document.around or around_of(_joined(waiting[document.begin : end])))
        for document, end in zip(opened, ends, strict=False)
    ]


def _prefix(opened: list[_Open]) -> bytes:
    return prefixed([document.around for document in opened if document.around is not None])


def _joined(lines: Iterable[tuple[int, bytes | Exception]]) -> bytes:
    return b" ".join(line.strip() for _, line in lines if isinstance(line, bytes))


_LONGEST_BRACE: Final = 200  # bytes, with the indentation
_BEFORE: Final = b",[\xef\xbb\xbf"
_AROUND: Final = b" \t," + _BEFORE[2:]


def _is_json(text: bytes) -> bool:
    """Return whether a line may be part of an indented JSON document; a line with a request of the log may not."""
    return text[:1] in b'"{}[]-0123456789tfn' and (MARKER not in text or text.startswith(b'"'))


def _part(line: bytes, *, any_open: bool) -> _Part:
    """Return a line of a container's log as a `_Part`. Unless `any_open`, do not decode a document of a whole line."""
    if (cri := _CRI.match(line)) is not None:
        return _Part(line, cri[1], cri.end(), len(line), cri[2] == b"F")
    if not line.startswith(b"{") or b'"log":' not in line:
        return _Part(line)
    is_whole = b'\\n"' in line or len(line) < DOCKER_BYTES
    if is_whole and not any_open and b'"P"' not in line and b'"partial_' not in line:
        return _Part(line)
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return _Part(line)
    log = document.pop("log", None)
    stream = "/".join(str(document[name]) for name in _STREAMS if name in document)
    if not isinstance(log, str) or not stream:
        return _Part(line)
    content, rest = json.dumps({"log": log})[:-1], json.dumps(document)[1:]
    return _Part(f"{content}, {rest}".encode(), stream.encode(), len(_LOG), len(content) - 1, _is_last(document, log))


_LOG: Final = '{"log": "'


def _is_last(document: dict[str, Any], log: str) -> bool:
    """Return whether a container's JSON document has the last part of a log line."""
    tag = document.get("logtag", document.get("_p"))
    if tag is not None:
        return str(tag) != "P"
    if "partial_message" in document:
        return str(document.get("partial_last", "true")).lower() == "true"
    return log.endswith("\n") or not DOCKER_BYTES <= len(log.encode("utf-8", "replace")) <= DOCKER_BYTES + _REPLACED
