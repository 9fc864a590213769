r"""Lines inside lines: what container runtimes, journald and log shippers put around a line of the request log.

    {"log":"[2024-05-01 12:00:00,123] DEBUG Completed request:{...}\n","stream":"stdout","time":"2024-05-01T12:00:00Z"}
    {"@timestamp":"2024-05-01T12:00:00.123Z","message":"Completed request:{...}", ...}
    {"@timestamp":"2024-05-01T12:00:00.123Z","requestHeader":{...},"totalTimeMs":4.67, ...}   (flattened)

A JSON object is recognised by what it holds, not by the product that wrote it: a member that is a request's line, or
the members of a request. Its own time counts where the line inside has none. Prefixes (CRI, syslog, kubectl) need no
unwrapping: the time next to the request counts (`line_time`). Nothing here knows Spark or files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from json.decoder import scanstring  # type: ignore[attr-defined]  # of the standard library, without a stub
from typing import Any, Final, NamedTuple

__all__ = ["MARKER", "Unwrapped", "may_be_request", "open_parts", "unwrap", "whole_lines"]

MARKER: Final = b"Completed request:"
"""What every line of a request has, whatever the log's layout puts before it; but for flattened documents."""

_HEADER: Final = "requestHeader"
_TEXT_MARKER: Final = MARKER.decode()
_TIMES: Final = (
    *("@timestamp", "timestamp", "time", "ts", "timeMillis", "instant", "eventTime", "ingestionTime"),
    *("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "timeUnixNano", "observedTimeUnixNano"),
)
_MARKER_IN_NUMBERS: Final = re.compile(rb",\s*".join(str(code).encode() for code in MARKER))
_DEEPEST: Final = 4
_DECODER: Final = json.JSONDecoder()
_CRI: Final = re.compile(rb"\d\S+ (stdout|stderr) ([PF])(?::\S*)? ")  # further tags may follow the first
_DOCKER: Final = re.compile(rb'\{"log":\s*"')
_DOCKER_END: Final = re.compile(rb'",\s*"stream":\s*"(\w+)"[^\n]*\}\s*$')


class Unwrapped(NamedTuple):
    """A line of the request log without what was around it."""

    text: str
    """The line, "" where the document is the request itself."""
    around: str
    """The times that stood around it, the outermost first, as text that `LineClock` reads."""
    body: Mapping[str, Any] | None
    """The request, where the document is the request itself."""
    documents: tuple[Mapping[str, Any], ...] = ()
    """The JSON documents around it, the outermost first; with a `body` its own is the last."""


def may_be_request(line: bytes) -> bool:
    """Return whether a line may hold a request. O(len(line)), by a search for bytes."""
    return MARKER in line or b"requestHeader" in line or _MARKER_IN_NUMBERS.search(line) is not None


def unwrap(text: str) -> Unwrapped:
    """Return the line of the request log that a line holds: itself where nothing is around it. O(len(text))."""
    return _unwrap(text, "", ())


def _unwrap(text: str, around: str, documents: tuple[Mapping[str, Any], ...]) -> Unwrapped:
    marked = text.find(_TEXT_MARKER)
    begin = text.find("{")
    if len(documents) < _DEEPEST and begin >= 0 and (marked < 0 or begin < marked):
        try:
            found = _DECODER.raw_decode(text, begin)[0]
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            if f"{_HEADER}." in text:
                found = _nested(found)
            inner = (*documents, found)
            if (held := _holding(found, "", 0)) is not None:
                return Unwrapped("", f"{around} {text[:begin]} {held[1]}", held[0], inner)
            if (marked_inside := next(_marked(found, "", 0), None)) is not None:
                inside, times = marked_inside
                return _unwrap(inside, f"{around} {text[:begin]} {times}", inner)
    if marked >= 0:
        after = marked + len(_TEXT_MARKER)
        if text.startswith('{\\"', after):  # a string of a JSON document that is spread over several lines
            try:
                inside, _ = scanstring(text, text.rfind('"', 0, marked) + 1)
            except ValueError:
                inside = text.replace('\\"', '"')
            return Unwrapped(inside, f"{around} {text[:marked]}", None, documents)
        if text.startswith('{""', after):  # a field of a CSV file
            return Unwrapped(text[: text.rfind("}") + 1].replace('""', '"'), around, None, documents)
    return Unwrapped(text, around, None, documents)


def _marked(found: Mapping[str, Any], around: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the texts in a document that hold a request, each with the times on the way to it."""
    times = f"{around} {_time(found)}"
    for value in found.values():
        if isinstance(value, str) and (_TEXT_MARKER in value or (value.startswith("{") and _HEADER in value)):
            yield value, times
        elif isinstance(value, dict) and depth < _DEEPEST:
            yield from _marked(value, times, depth + 1)
        elif isinstance(value, list) and len(value) > len(MARKER) and all(isinstance(one, int) for one in value):
            try:  # journald's form of what is no text, and of colored text
                inside = bytes(value).decode("utf-8")
            except ValueError:
                continue
            if _TEXT_MARKER in inside:
                yield inside, times
        elif isinstance(value, list) and depth < _DEEPEST:
            items = [one for item in value if isinstance(item, dict) for one in _marked(item, times, depth + 1)]
            if len(items) == 1:  # of several requests in a list none is read: `LineParser` refuses the line
                yield items[0]


def _holding(found: Mapping[str, Any], around: str, depth: int) -> tuple[Mapping[str, Any], str] | None:
    """Return the document that has a request's members, this one or one inside it, and the times on the way to it."""
    times = f"{around} {_time(found)}"
    if isinstance(found.get(_HEADER), dict):
        return found, times
    inside = (value for value in found.values() if isinstance(value, dict)) if depth < _DEEPEST else ()
    return next((held for value in inside if (held := _holding(value, times, depth + 1)) is not None), None)


def _nested(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document whose names have dots ("requestHeader.clientId") as documents in documents."""
    nested: dict[str, Any] = {}
    for name, value in found.items():
        *folders, last = name.split(".")
        place = nested
        for folder in folders:
            inner = place.setdefault(folder, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place[last] = _nested(value) if isinstance(value, dict) else value
    return nested


def _time(found: Mapping[str, Any]) -> str:
    """Return a document's own time as text in ISO 8601, "" where it has none that is known."""
    for name in _TIMES:
        value = found.get(name)
        if isinstance(value, str) and not value.isdecimal():
            return value
        if isinstance(value, dict) and isinstance(value.get("epochSecond"), int):
            value = value["epochSecond"] * 1_000_000 + int(value.get("nanoOfSecond", 0)) // 1000
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            value = _microseconds(float(value), int(value) if not isinstance(value, float) else None)
        else:
            continue
        try:
            return (
                datetime.fromtimestamp(value // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
                + f".{value % 1_000_000:06}Z"
            )
        except (ValueError, OverflowError, OSError):
            return ""
    return ""


def _microseconds(value: float, whole: int | None) -> int:
    """Return a time since 1970, in seconds, milliseconds, microseconds or nanoseconds by its size."""
    for limit, per_second in ((1e11, 1), (1e14, 1000), (1e17, 1_000_000)):
        if abs(value) < limit:
            return whole * (1_000_000 // per_second) if whole is not None else round(value * (1_000_000 // per_second))
    return (whole if whole is not None else round(value)) // 1000


def whole_lines(
    lines: Iterable[tuple[int, bytes | Exception]],
    begun: Collection[bytes] = (),
    after: Iterable[bytes | Exception] = (),
) -> Iterator[tuple[int, bytes | Exception]]:
    """Join numbered lines that a container runtime cut at 16 KiB; the number is that of the last part.

    CRI marks a part with P and the last with F; Docker's json-file ends all but the last without a line break. Errors
    in place of a line are passed on. The parts of stdout and stderr are kept apart. Parts whose last is missing come at
    the end. Of streams that are `begun` the parts up to the next last one are left out: they belong to what is before
    these lines. What is still open is looked for in the lines `after` these.
    """
    parts: dict[bytes, bytes] = {}  # by stream, with what is before the first of them
    numbers: dict[bytes, int] = {}
    others = set(begun)
    number = 0
    for number, line in lines:
        if isinstance(line, Exception) or line.startswith(b"["):  # no container's, as mostly
            yield number, line
            continue
        stream, content, whole = _part(line)
        if stream in others:
            if whole:
                others.remove(stream)
            continue
        if stream in parts:
            line = parts.pop(stream) + line[content:]
        if whole:
            yield number, line
        else:
            parts[stream], numbers[stream] = _begun(line), number
    following = enumerate(after, number + 1) if parts else iter(())
    while parts and (found := next(following, None)) is not None:
        number, more = found
        if isinstance(more, Exception):
            continue
        stream, content, whole = _part(more)
        if stream in parts and whole:
            yield number, parts.pop(stream) + more[content:]
        elif stream in parts:
            parts[stream], numbers[stream] = _begun(parts[stream] + more[content:]), number
    for stream, joined in parts.items():
        yield numbers[stream], joined


def open_parts(lines: Iterable[bytes | Exception]) -> set[bytes]:
    """Return the streams whose last line is a part that further ones have to follow."""
    parts = [_part(line) for line in lines if isinstance(line, bytes)]
    return {stream for stream, whole in {stream: whole for stream, _, whole in parts}.items() if not whole}


def _begun(line: bytes) -> bytes:
    """Return a part without what Docker has behind it."""
    end = _DOCKER_END.search(line)
    return line[: end.start()] if end is not None else line


def _part(line: bytes) -> tuple[bytes, int, bool]:
    """Return the stream of a container's line, where its content begins, and whether it ends with it."""
    if (docker := _DOCKER.match(line)) is not None and (end := _DOCKER_END.search(line)) is not None:
        return end[1], docker.end(), line.endswith(b"\\n", 0, end.start())
    if (cri := _CRI.match(line)) is not None:
        return cri[1], cri.end(), cri[2] == b"F"
    return b"", 0, True
