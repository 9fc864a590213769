r"""Unwrap lines of the request log from what container runtimes, journald and log shippers put around them.

    {"log":"[2024-05-01 12:00:00,123] DEBUG Completed request:{...}\n","stream":"stdout","time":"2024-05-01T12:00:00Z"}
    {"@timestamp":"2024-05-01T12:00:00.123Z","message":"Completed request:{...}", ...}
    {"@timestamp":"2024-05-01T12:00:00.123Z","requestHeader":{...},"totalTimeMs":4.67, ...}   (flattened)

A JSON object is recognised by what it holds, not by the product that wrote it: a member that is a request's line, or
the members of a request. The object's own time counts if the line inside has no time. Prefixes (CRI, syslog, kubectl)
need no unwrapping: the time next to the request counts (`line_time`). Independent of Spark and files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import unescape
from itertools import pairwise
from json.decoder import scanstring  # type: ignore[attr-defined]  # of the standard library, without a stub
from typing import Any, Final, NamedTuple

__all__ = [
    "MARKER",
    "Around",
    "Unwrapped",
    "around_of",
    "document_broker",
    "each_request",
    "may_be_request",
    "prefixed",
    "unwrap",
]

MARKER: Final = b"Completed request:"
"""The text in every line of a request, in any layout of the log; only flattened documents lack it."""

_HEADER: Final = "requestHeader"
_TEXT_MARKER: Final = MARKER.decode()
_QUOTED_HEADER: Final = b'"requestHeader"'
_TIMES: Final = (
    *("@timestamp", "timestamp", "Timestamp", "time", "_time", "ts", "timeMillis", "instant", "asctime", "datetime"),
    *("date", "eventTime", "TimeGenerated", "ingestionTime"),
    *("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "timeUnixNano", "observedTimeUnixNano"),
)
_BODIES: Final = frozenset({"request", "response", _HEADER, "clientInformation"})
_BROKERS: Final = tuple(
    re.compile(rf"(?:.*[._@])?(?:{names})")
    for names in (
        "broker_?id",
        r"pod[._]?name|pod",
        r"container[._]?name",
        r"log_?stream(?:name)?",
        r"host[._]?name|host\.hostname|host|source_?host|computer",
    )
)
"""Members of documents that name a broker, the most exact first."""
_MARKER_IN_NUMBERS: Final = re.compile(rb",\s*".join(str(code).encode() for code in MARKER))
_DEEPEST: Final = 4
_LONGEST_NAME: Final = 256
_LONGEST_PREFIX: Final = 4096  # of each request of a document
_DECIMAL: Final = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_DECODER: Final = json.JSONDecoder()
_LETTER: Final = re.compile(r"\w")
_POD: Final = "[pod/"
_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|([{[])|[}\]]')  # strings, and brackets outside of them
# The head of a line of the log, in the middle of one.
_HEAD: Final = re.compile(r"\[?(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^{}\"]{0,200}?Completed request:")


class Unwrapped(NamedTuple):
    """A line of the request log without what was around it."""

    text: str
    """The line; "" if the document is itself the request."""
    around: str
    """The times in the text around the line, the outermost first, as `LineClock` reads them."""
    body: Mapping[str, Any] | None
    """The request, if the document is itself the request; else None."""
    documents: tuple[Mapping[str, Any], ...] = ()
    """The JSON documents around the line, the outermost first. With a `body`, the last is the body's own document."""


class Around(NamedTuple):
    """The broker and time that a document gives for the requests in it."""

    broker: str | None
    time: str
    """Text of the time; "" if the document has none."""


def around_of(head: bytes) -> Around:
    """Return broker and time from the head of a document: its text up to an inner object. O(len(head))."""
    closing: list[str] = []
    for match in _STRUCTURE.finditer(head):
        if match[1]:
            closing.append("}" if match[1] == b"{" else "]")
        elif not match[0].startswith(b'"') and closing:
            closing.pop()
    text = head.decode("utf-8", "replace").lstrip("[,\ufeff ").rstrip(", ")
    document = _document(text + "".join(reversed(closing)), 0)
    return Around(None, "") if document is None else Around(_own_broker(document[0]), _time(document[0]))


def prefixed(around: list[Around]) -> bytes:
    """Return the prefix for a document inside others (outermost first): the nearest broker, and all times."""
    broker = next((entry.broker for entry in reversed(around) if entry.broker), None)
    words = [f"{_POD}{broker}]" if broker else "", *(entry.time for entry in around)]
    return "".join(f"{word} " for word in words if word).encode("utf-8", "replace")


def may_be_request(line: bytes) -> bool:
    """Return whether a line may hold a request. O(len(line)), by a search for bytes."""
    return MARKER in line or b"requestHeader" in line or _MARKER_IN_NUMBERS.search(line) is not None


def unwrap(text: str) -> Unwrapped:
    """Return the request log's line inside `text`; `text` itself if there is nothing around the line. O(len(text))."""
    return _unwrap(text, "", ())


def each_request(line: bytes) -> list[bytes]:
    """Split a line that holds several requests into a line for each request; else return [line]. O(len(line)).

    The requests may be events of a JSON document, consecutive documents, or lines that ran together without line break.
    """
    if line.count(MARKER) + line.count(_QUOTED_HEADER) < 2:
        return [line]
    text = line.decode("utf-8", "replace")
    requests, at = list[str](), 0
    while (begin := text.find("{", at)) >= 0 and (document := _document(text, begin)) is not None:
        if _TEXT_MARKER in text[at:begin]:  # it is the body of a plain line
            break
        for request, times in _held(document[0], text[max(at, begin - _LONGEST_PREFIX) : begin], 0, named=True):
            requests.append(f"{times} {request if isinstance(request, str) else json.dumps(request)}")
        at = document[1]
    if len(requests) < 2:
        cuts = [0, *(head.start() for head in _HEAD.finditer(text) if head.start()), len(text)]
        parts = (text[start:end] for start, end in pairwise(cuts))
        requests = [part for part in parts if _LETTER.search(part)]  # not the bracket that opens an array
    return [part.encode("utf-8", "replace") for part in requests] if len(requests) > 1 else [line]


def _document(text: str, begin: int) -> tuple[dict[str, Any], int] | None:
    """Return the JSON object that begins at index `begin`, and the index of its end; None if no object begins there."""
    try:
        document, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    return (_nested(document) if text.find(f"{_HEADER}.", begin, end) >= 0 else document, end)


def _unwrap(text: str, around: str, documents: tuple[Mapping[str, Any], ...]) -> Unwrapped:
    marker = text.find(_TEXT_MARKER)
    begin = text.find("{")
    if len(documents) < _DEEPEST and begin >= 0 and (marker < 0 or begin < marker):
        document = _document(text, begin)
        requests = _held(document[0], f"{around} {text[:begin]}", 0) if document is not None else []
        if document is not None and len(requests) == 1 and not may_be_request(text[document[1] :].encode()):
            (inside, times), inner = requests[0], (*documents, document[0])
            return _unwrap(inside, times, inner) if isinstance(inside, str) else Unwrapped("", times, inside, inner)
    if marker >= 0:
        after = marker + len(_TEXT_MARKER)
        if text.startswith('{\\"', after):  # a string of a JSON document that is spread over several lines
            try:
                inside, _ = scanstring(text, text.rfind('"', 0, marker) + 1)
            except ValueError:
                inside = text.replace('\\"', '"')
            return Unwrapped(inside, f"{around} {text[:marker]}", None, documents)
        if text.startswith('{""', after):  # a field of a CSV file
            return Unwrapped(text[: text.rfind("}") + 1].replace('""', '"'), around, None, documents)
        if text.startswith("{&quot;", after):  # in HTML or XML
            return Unwrapped(unescape(text[: text.rfind("}") + 1]), around, None, documents)
    return Unwrapped(text, around, None, documents)


def document_broker(document: Mapping[str, Any]) -> str | None:
    """Return the broker that a document names outside the request's bodies: `broker-1` by its id, a pod, a host.

    If it names none and has a single request, return the broker named in the inner documents around that request.
    """
    if (broker := _own_broker(document)) is not None:
        return broker
    requests = _held(document, "", 0, named=True)
    if len(requests) != 1 or not requests[0][1].startswith(_POD):
        return None
    return requests[0][1][len(_POD) :].partition("]")[0]


def _own_broker(document: Mapping[str, Any]) -> str | None:
    members = {name.lower(): value for name, value in _members(document, "", 0)}
    for names in _BROKERS:
        for name, value in members.items():
            if names.fullmatch(name) and (text := str(value).strip("/ ")):
                return f"broker-{text}" if names is _BROKERS[0] and text.isdecimal() else text
    return None


def _members(document: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        if isinstance(value, dict) and depth < _DEEPEST and name not in _BODIES:
            yield from _members(value, f"{before}{name}.", depth + 1)
        elif isinstance(value, str | int) and len(str(value)) < _LONGEST_NAME:
            yield f"{before}{name}", value


def _held(
    document: Mapping[str, Any], around: str, depth: int, *, named: bool = False
) -> list[tuple[str | Mapping[str, Any], str]]:
    """Return (request, times) for each request in a document. A request is a text, or an object with its members.

    The times are those of the documents around the request. Only a list holds several requests: two members that hold
    a request hold the same request, and the object or else the longer text is taken. With `named`, the broker that a
    document names stands before the times, in the form in which kubectl writes a pod.
    """
    times = f"{around} {_time(document)}"
    if named and (broker := _own_broker(document)) is not None:
        times = f"{_POD}{broker}] {times}"
    if _HEADER in document and isinstance((request := _typed(document)).get(_HEADER), dict):
        return [(request, times)]
    best: list[tuple[str | Mapping[str, Any], str]] = []
    for value in document.values():
        inside = value if isinstance(value, list) else [value]
        text = _of_numbers(inside)
        requests = [pair for item in ([text] if text else inside) for pair in _held_by(item, times, depth, named=named)]
        if requests and (not best or _rank(requests) > _rank(best)):
            best = requests
    return best


def _typed(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parse a flattened request's objects and times that a log shipper turned into text; return the request."""
    members: dict[str, Any] = {}
    for name, value in document.items():
        if not isinstance(value, str):
            continue
        try:
            if name in _BODIES and value.startswith("{"):
                members[name] = json.loads(value)
            elif name.endswith("TimeMs") and _DECIMAL.fullmatch(value):
                members[name] = float(value)
        except (ValueError, RecursionError):
            continue
    return {**document, **members} if members else document


def _held_by(value: Any, times: str, depth: int, *, named: bool) -> list[tuple[str | Mapping[str, Any], str]]:
    if isinstance(value, list) and len(value) > 1:  # Loki's: a time, a line, and perhaps more
        value, times = value[1], f"{times} {_time({'time': value[0]})}"
    if isinstance(value, str) and (_TEXT_MARKER in value or (value.startswith("{") and _HEADER in value)):
        return [(value, times)]
    return _held(value, times, depth + 1, named=named) if isinstance(value, dict) and depth < _DEEPEST else []


def _rank(requests: list[tuple[str | Mapping[str, Any], str]]) -> tuple[int, bool, int]:
    return len(requests), not isinstance(requests[0][0], str), len(requests[0][0])


def _of_numbers(value: list[Any]) -> str | None:
    """Return the text of a list of byte values, as journald writes text with colour codes; None without a request."""
    if len(value) <= len(MARKER) or not all(isinstance(number, int) for number in value):
        return None
    try:
        text = bytes(value).decode("utf-8")
    except ValueError:
        return None
    return text if _TEXT_MARKER in text else None


def _nested(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document whose names have dots ("requestHeader.clientId") as nested documents."""
    nested: dict[str, Any] = {}
    for name, value in document.items():
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


def _time(document: Mapping[str, Any]) -> str:
    """Return a document's own time as text in ISO 8601; "" if no member with a known name has a time."""
    for name in _TIMES:
        value = document.get(name)
        if isinstance(value, list) and len(value) == 1:  # Elasticsearch's fields
            (value,) = value
        if isinstance(value, str) and not value.isdecimal():
            return value[:_LONGEST_NAME]
        try:
            if isinstance(value, dict) and isinstance(value.get("epochSecond"), int):
                time_us = value["epochSecond"] * 1_000_000 + int(value.get("nanoOfSecond", 0)) // 1000
            elif isinstance(value, str | int | float) and not isinstance(value, bool):
                time_us = _microseconds(float(value), int(value) if not isinstance(value, float) else None)
            else:
                continue
            second = datetime.fromtimestamp(time_us // 1_000_000, UTC)
        except (ValueError, TypeError, OverflowError, OSError):  # not a number, or of no year that there is
            return ""
        return f"{second:%Y-%m-%dT%H:%M:%S}.{time_us % 1_000_000:06}Z"
    return ""


def _microseconds(value: float, count: int | None) -> int:
    """Convert a time since 1970 to microseconds. Its size shows whether it is in s, ms, us or ns.

    `count` is the exact value if it is an integer.
    """
    for limit, per_second in ((1e11, 1), (1e14, 1000), (1e17, 1_000_000)):
        if abs(value) < limit:
            return count * (1_000_000 // per_second) if count is not None else round(value * (1_000_000 // per_second))
    return (count if count is not None else round(value)) // 1000
