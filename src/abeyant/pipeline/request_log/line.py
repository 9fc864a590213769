"""Parse one line of Kafka's request logger, or say why it cannot be parsed.

Kafka 2.8 and later log one line per request, when its response has been sent, through the logger `kafka.request.logger`
at DEBUG and at TRACE:

    [2026-11-21 10:56:42,207] DEBUG Completed request:{"requestHeader":{...},"request":{...},"response":{...},
    "connection":"...","totalTimeMs":2001.7,"requestQueueTimeMs":0.1,"localTimeMs":0.6,"remoteTimeMs":2000.8,
    "throttleTimeMs":0,"responseQueueTimeMs":0.1,"sendTimeMs":0.1,...} (kafka.request.logger)

Older versions write text (`text`). What other tools put around a line is removed first (`wrapping`). Independent of
Spark and files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Final

from abeyant.pipeline.request_log.line_time import LineClock
from abeyant.pipeline.request_log.text import is_text, text_request
from abeyant.pipeline.request_log.wrapping import MARKER, each_request, may_be_request, unwrap

__all__ = [
    "MARKER",
    "NOT_A_REQUEST",
    "ApiRequest",
    "BadLineError",
    "LineParser",
    "excerpt",
    "naming_lines",
    "topic_names",
]

NOT_A_REQUEST: Final = "not a completed request"
"""The reason for a rejected line of another logger; a container's log has many such lines."""

API_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_TEXT_MARKER: Final = MARKER.decode()
_BLANK: Final = re.compile(r"[ \t]*")
_EXCERPT_CHARS: Final = 200
# A thousand years: all sums of microseconds stay far inside 64 bits.
LONGEST_MS: Final = 1000 * 365 * 86_400_000

# What may follow the message: logger and thread (Strimzi has both), a context, a colour, the end of a field; in
# the text of `aws logs` the time in milliseconds.
TRAILER: Final = re.compile(
    r"[\"']?\s*+(?:(?:\([^\s()]+\)|\[[^\[\]]*\]|\{[^{}\"]*\}|[-|] \S+|1\d{12}|(?:\x1b|#033)\[[\d;]*m)"
    r"\s*+){0,8}[\"']?[,;]?\s*+$"
)

# Kafka prints a topic id as 22 characters of URL-safe base 64; the metadata log's is the same everywhere.
_METADATA_TOPIC: Final = ("AAAAAAAAAAAAAAAAAAAAAQ", "__cluster_metadata")
_NO_TOPIC: Final = "AAAAAAAAAAAAAAAAAAAAAA"

# APIs whose responses have both the name and the id of a topic
_NAMING_APIS: Final = (b"METADATA", b"CREATE_TOPICS", b"DESCRIBE_TOPIC_PARTITIONS")


class BadLineError(ValueError):
    """Raised for a line that has no readable request; the message is the reason for rejecting the line."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One logged request: when the response was sent, and the fields that Kafka's request logger writes."""

    sent_us: int
    """The line's timestamp, in microseconds since 1970 (the log has milliseconds)."""
    api: str
    client_id: str | None
    listener: str | None
    request: Mapping[str, Any] | None
    """The request's body, None where the log has none."""
    response: Mapping[str, Any] | None
    local_ms: float
    """Time in the local handler. The operation's timer starts inside the handler, before this time ends."""
    remote_ms: float
    """Time from the end of the local handler to the response: the time in purgatory."""
    after_ms: float
    """Time from the response to the log line: waiting in the response queue, and sending."""
    send_ms: float
    """Time to send the response, a part of `after_ms`."""
    throttle_ms: float
    """Time for which a quota throttled the client."""

    @property
    def wait_us(self) -> int:
        """How long the request waited, in microseconds."""
        return round(self.remote_ms * 1000)

    @property
    def start_us(self) -> int:
        """When the wait began (the request entered the purgatory), in microseconds since 1970."""
        return self.sent_us - round(self.after_ms * 1000) - self.wait_us


class LineParser:
    """Parser for the lines of one log; `timezone` applies to timestamps that name no time zone."""

    def __init__(self, timezone: tzinfo = UTC) -> None:
        self._clock = LineClock(timezone)
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def parse(self, line: bytes) -> ApiRequest:
        """Return the request in the line; raise `BadLineError` with the reason if there is none or it is unreadable."""
        if not may_be_request(line):
            raise BadLineError(NOT_A_REQUEST)
        try:
            line_text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadLineError(f"not valid UTF-8: byte {error.start}") from error
        text, around, flattened, documents = unwrap(line_text)
        begin = text.find(_TEXT_MARKER)
        count = line_text.count(_TEXT_MARKER)
        is_escaped = count > text.count(_TEXT_MARKER) or 0 <= line_text.find("{") < begin
        if not documents and count > 1 and is_escaped:
            raise BadLineError(f"{count} requests in one document: only one request per line can be read")
        if begin < 0 and flattened is None:
            raise BadLineError(NOT_A_REQUEST)
        try:
            sent_us = self._clock.read(f"{around} {text[:begin]}" if around else text[:begin])
        except ValueError as error:
            raise BadLineError(str(error)) from error
        if flattened is not None:
            return _request(flattened, sent_us)
        begin = _BLANK.match(text, begin + len(_TEXT_MARKER)).end()  # type: ignore[union-attr]
        if is_text(text, begin):
            try:
                return _request(text_request(text, begin), sent_us)
            except ValueError as error:
                raise BadLineError(str(error)) from error
        try:
            body, end = self._decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            # An error at the end of the text means that the line was cut off.
            if not text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
                raise BadLineError("the line ends inside its JSON") from error
            raise BadLineError(f"not valid JSON: {error.msg} at character {error.pos}") from error
        except (RecursionError, ValueError) as error:
            raise BadLineError(f"not valid JSON: {error}") from error
        if not TRAILER.match(text, end):
            raise BadLineError("text after the JSON")
        return _request(body, sent_us)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _request(body: Any, sent_us: int) -> ApiRequest:
    header = _field(body, "requestHeader", dict)
    api = _field(header, "requestApiKeyName", str)
    if not API_NAME.fullmatch(api):
        raise BadLineError("field requestApiKeyName is not the name of an API")
    send_ms = _milliseconds(body, "sendTimeMs")
    return ApiRequest(
        sent_us=sent_us,
        api=api,
        client_id=_optional(header, "clientId", str),
        listener=_optional(body, "listener", str),
        request=_optional(body, "request", dict),
        response=_optional(body, "response", dict),
        local_ms=_milliseconds(body, "localTimeMs"),
        remote_ms=_milliseconds(body, "remoteTimeMs"),
        after_ms=_milliseconds(body, "responseQueueTimeMs") + send_ms,
        send_ms=send_ms,
        throttle_ms=_milliseconds(body, "throttleTimeMs") if "throttleTimeMs" in body else 0.0,
    )


def _field(body: Any, name: str, kind: type) -> Any:
    if not isinstance(body, dict):
        raise BadLineError("the JSON is not a request object")
    if name not in body:
        raise BadLineError(f"no field {name}")
    if not isinstance(body[name], kind):
        raise BadLineError(f"field {name} is a {type(body[name]).__name__}, not a {kind.__name__}")
    return body[name]


def _optional(body: Any, name: str, kind: type) -> Any:
    # Kafka writes "" in place of a body that it did not keep, and of the response that acks=0 never sends.
    if isinstance(body, dict) and body.get(name) in (None, ""):
        return None
    return _field(body, name, kind)


def _milliseconds(body: Mapping[str, Any], name: str) -> float:
    value = _field(body, name, object)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadLineError(f"field {name} is a {type(value).__name__}, not a number")
    # Kafka's clock is monotonic: a negative time is damage.
    if not 0 <= value < LONGEST_MS:
        raise BadLineError(f"field {name} is {str(value)[:24]}, not a duration")
    return float(value)


def naming_lines(block: bytes) -> Iterator[bytes]:
    """Yield, from the last to the first, the lines of a block that may have a topic's name and id. O(len(block))."""
    for api in _NAMING_APIS:
        at = block.rfind(api)  # Python searches backwards at twice the speed
        while at >= 0:
            begin, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
            yield block[begin : len(block) if end < 0 else end]
            at = block.rfind(api, 0, begin)


def topic_names(line: bytes) -> Iterator[tuple[str, str]]:
    """Yield (topic id, name) for each topic whose id and name are in a line's response; nothing from a bad line."""
    yield from _topic_names(line)
    marked = line.find(MARKER)
    if 0 <= marked < line.find(b"{") and line.find(MARKER, marked + 1) < 0:  # one request, in no document: as mostly
        return
    requests = each_request(line)
    for request in requests if len(requests) > 1 else ():
        if any(api in request for api in _NAMING_APIS):
            yield from _topic_names(request)


def _topic_names(line: bytes) -> Iterator[tuple[str, str]]:
    try:
        text, _, body, _ = unwrap(line.decode("utf-8"))
        if body is None:
            body, _ = json.JSONDecoder().raw_decode(text[text.index(_TEXT_MARKER) + len(_TEXT_MARKER) :].lstrip())
        topics = body["response"]["topics"]
        pairs = [(topic.get("topicId"), topic.get("name")) for topic in topics]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return
    for topic_id, name in pairs:
        if isinstance(topic_id, str) and isinstance(name, str) and name and topic_id != _NO_TOPIC:
            yield topic_id, name


KNOWN_TOPICS: Final[Mapping[str, str]] = dict([_METADATA_TOPIC])
"""Topic ids that are the same in every cluster."""


def excerpt(line: bytes) -> str:
    """Return the beginning of a line as printable text for a person to read; other bytes are escaped."""
    text = line[: 4 * _EXCERPT_CHARS].decode("utf-8", errors="backslashreplace").rstrip("\r\n")
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return printable if len(printable) <= _EXCERPT_CHARS else printable[: _EXCERPT_CHARS - 1] + "…"
