"""Decode the common lines of a request log to typed structures with msgspec, several times as fast as `LineParser`.

A line that is not exactly of a common form is refused here without a reason: `LineParser` then reads it, or says what
is wrong. So these types may be stricter than `LineParser`, but never laxer. They name only the fields that an operation
needs; msgspec checks only the syntax of the other fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from abeyant.pipeline.request_log.line import API_NAME, LONGEST_MS, TRAILER, ApiRequest, BadLineError
from abeyant.pipeline.request_log.line_time import LineClock
from abeyant.pipeline.request_log.operation import (
    COMPLETED,
    DELAYABLE,
    EARLY_MS,
    EXPIRED,
    REQUEST_TIMED_OUT,
    Operated,
    Read,
    first_error,
    read_request,
)
from abeyant.pipeline.request_log.wrapping import MARKER

__all__ = ["TypedParser"]

# What operation.py takes from a body, with its limits.
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 2)]
_Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Code = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
_Size = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | UnsetType
_Limit = Annotated[int, Meta(ge=-(2**63), le=2**31 - 1)]
_Milliseconds = Annotated[float, Meta(ge=0, lt=LONGEST_MS)]

_TRAILER: Final = b" (kafka.request.logger)"
_NAME: Final = b'"requestApiKeyName":"'
_NAME_WITHIN: Final = 512  # bytes: a client's id stands before it
# Where Kafka's own lines have the first two bytes of the API's number. A guess: the decoder checks the name.
_NUMBER: Final = len(b'{"isForwarded":false,"requestHeader":{"requestApiKey":')
# A head whose only digits are those of one time; a container runtime's line has two times.
_ONE_TIME: Final = re.compile(rb"(\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[,.])(\d{3})((?:[+-]\d\d:?\d\d)?[^0-9{]+)")


_Typed = tuple[Callable[[bytes], Any], Callable[[Any], Operated | None]]
"""The decoder of one API's lines, and the function from a decoded line to its operation."""


class _Header(Struct, rename="camel", gc=False):
    request_api_key_name: str
    client_id: str | None = None


class _FetchHeader(_Header, rename="camel", gc=False):
    request_api_key_name: Literal["FETCH"]


class _ProduceHeader(_Header, rename="camel", gc=False):
    request_api_key_name: Literal["PRODUCE"]


class _Line(Struct, rename="camel", gc=False, kw_only=True):
    local_time_ms: _Milliseconds
    remote_time_ms: _Milliseconds
    response_queue_time_ms: _Milliseconds
    send_time_ms: _Milliseconds
    throttle_time_ms: _Milliseconds = 0.0
    listener: str | None = None


class _OtherLine(_Line, rename="camel", kw_only=True):
    request_header: _Header
    request: dict[str, Any] | Literal[""] | None = None
    response: dict[str, Any] | Literal[""] | None = None


class _CountedLine(_Line, rename="camel", kw_only=True):
    """A line whose bodies are not decoded."""

    request_header: _Header
    request: dict[str, msgspec.Raw] | Literal[""] | None = None
    response: dict[str, msgspec.Raw] | Literal[""] | None = None


class _Topic(Struct, rename="camel", gc=False):
    name: str | None = None
    topic: str | None = None
    topic_id: str | None = None


class _ReplicaState(Struct, rename="camel", gc=False):
    replica_id: _Long = -1


class _FetchPartition(Struct, rename="camel", gc=False):
    partition: _Long
    fetch_offset: _Long


class _FetchTopic(_Topic, rename="camel", gc=False):
    partitions: list[_FetchPartition] | None = None


class _FetchRequest(Struct, rename="camel", gc=False):
    max_wait_ms: _Limit
    replica_state: _ReplicaState | None = None
    replica_id: _Long = -1
    topics: list[_FetchTopic] | None = None


class _Fetched(Struct, rename="camel", gc=False):
    error_code: _Code
    records_size_in_bytes: _Size = UNSET


class _FetchTopicResponse(Struct, gc=False):
    partitions: list[_Fetched] | None = None


class _FetchResponse(Struct, rename="camel", gc=False):
    error_code: _Code = 0
    responses: list[_FetchTopicResponse] | None = None


class _FetchLine(_Line, rename="camel", gc=False, kw_only=True):
    request_header: _FetchHeader
    request: _FetchRequest
    response: _FetchResponse


class _ProducePartition(Struct, rename="camel", gc=False):
    index: _Index
    records_size_in_bytes: _Size = UNSET


class _ProduceTopic(_Topic, rename="camel", gc=False):
    partition_data: list[_ProducePartition] | None = None


class _ProduceRequest(Struct, rename="camel", gc=False):
    timeout_ms: _Limit
    topic_data: list[_ProduceTopic] | None = None


class _Appended(Struct, rename="camel", gc=False):
    index: _Index
    error_code: _Code
    base_offset: _Long


class _ProduceTopicResponse(_Topic, rename="camel", gc=False):
    partition_responses: list[_Appended] | None = None


class _ProduceResponse(Struct, gc=False):
    responses: list[_ProduceTopicResponse] | None = None


class _ProduceLine(_Line, rename="camel", gc=False, kw_only=True):
    request_header: _ProduceHeader
    request: _ProduceRequest
    response: _ProduceResponse


class TypedParser:
    """Parser for the common lines of one log; `topics` maps topic ids to names."""

    def __init__(self, timezone: tzinfo, topics: Mapping[str, str]) -> None:
        self._clock = LineClock(timezone)
        self._topics = topics
        self._trailer = _TRAILER
        self._before, self._after, self._second_us = b"", b"\n", 0
        self._middle, self._end = b"\n", b"}" + _TRAILER
        fetch: _Typed = msgspec.json.Decoder(_FetchLine).decode, self._fetch
        produce: _Typed = msgspec.json.Decoder(_ProduceLine).decode, self._produce
        self._typed: Final[Mapping[bytes, _Typed]] = {b"FETCH": fetch, b"PRODUCE": produce}
        self._numbered: Final[Mapping[bytes, _Typed]] = {b"1,": fetch, b"0,": produce}
        self._other = msgspec.json.Decoder(_OtherLine).decode
        self._counted = msgspec.json.Decoder(_CountedLine).decode

    def read(self, line: bytes) -> Read | None:
        """Return a line's request; None if `LineParser` has to parse the line. O(len(line))."""
        if (common := self._common(line)) is None:
            return None
        body, sent_us = common
        typed = self._numbered.get(body[_NUMBER : _NUMBER + 2])
        if typed is None:
            name = body.find(_NAME, 0, _NAME_WITHIN) + len(_NAME)
            typed = self._typed.get(body[name : body.find(b'"', name)])
            if typed is None:
                return self._read_other(body, sent_us)
        try:
            decoded_line = typed[0](body)
        except (msgspec.DecodeError, RecursionError):
            return self._read_other(body, sent_us)
        if (operation := typed[1](decoded_line)) is None:
            return self._read_other(body, sent_us)
        return _read(decoded_line, sent_us, operation)

    def request(self, line: bytes) -> ApiRequest | None:
        """Return a line's request as `LineParser` does, with its bodies; None if `LineParser` has to parse the line."""
        common = self._common(line)
        return None if common is None else self._request(*common)

    def _common(self, line: bytes) -> tuple[bytes, int] | None:
        """Return the JSON of a line of a common form, and its timestamp in us; None for a line of another form."""
        digits_at, middle_at = len(self._before), len(self._before) + 3
        if (  # it differs from the line before in its milliseconds and its JSON alone, as most do
            line.startswith(self._middle, middle_at)
            and line.startswith(self._before)
            and line.endswith(self._end)
            and (digits := line[digits_at:middle_at]).isdigit()
            and line.isascii()
        ):
            body = line[middle_at + len(self._middle) - 1 : len(line) - len(self._end) + 1]
            return body, self._second_us + int(digits) * 1000
        marker = line.find(MARKER)
        begin, end = marker + len(MARKER), line.rfind(b"}") + 1
        if marker < 0 or not line.startswith(b"{", begin):
            return None
        if line[end:] != self._trailer and not self._is_trailer(line[end:]):
            return None
        sent_us = self._sent(line[:marker])
        if sent_us is None or not (line.isascii() or _is_utf8(line)):  # msgspec does not look into what it skips
            return None
        return line[begin:end], sent_us

    def _read_other(self, body: bytes, sent_us: int) -> Read | None:
        try:
            line = self._counted(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        api = line.request_header.request_api_key_name
        if not line.remote_time_ms and api not in DELAYABLE:  # it is only counted
            return _read(line, sent_us, None) if API_NAME.fullmatch(api) else None
        if (request := self._request(body, sent_us)) is None:
            return None
        try:
            return read_request(request, self._topics)
        except BadLineError:
            return None

    def _request(self, body: bytes, sent_us: int) -> ApiRequest | None:
        try:
            line = self._other(body)
            if not API_NAME.fullmatch(line.request_header.request_api_key_name):
                return None
            return ApiRequest(
                sent_us=sent_us,
                api=line.request_header.request_api_key_name,
                client_id=line.request_header.client_id or None,
                listener=line.listener or None,
                request=None if line.request == "" else line.request,
                response=None if line.response == "" else line.response,
                local_ms=line.local_time_ms,
                remote_ms=line.remote_time_ms,
                after_ms=line.response_queue_time_ms + line.send_time_ms,
                send_ms=line.send_time_ms,
                throttle_ms=line.throttle_time_ms,
            )
        except (msgspec.DecodeError, RecursionError):
            return None

    def _is_trailer(self, trailer: bytes) -> bool:
        if not trailer.isascii() or TRAILER.match(trailer.decode()) is None:
            return False
        self._trailer, self._end = trailer, b"}" + trailer
        return True

    def _sent(self, head: bytes) -> int | None:
        """Return the time in the text before a request, in us; None if it is of no common form.

        If only the milliseconds differ from the line before, as in most lines, the rest is not parsed again.
        """
        cut = len(self._before)
        digits = head[cut : cut + 3]
        if head.startswith(self._before) and head[cut + 3 :] == self._after and digits.isdigit():
            return self._second_us + int(digits) * 1000
        if b"{" in head:  # a document around the line
            return None
        try:
            sent_us = self._clock.read(head.decode())
        except ValueError:
            return None
        if (match := _ONE_TIME.fullmatch(head)) is not None:
            self._before, self._after, self._middle = match[1], match[3], match[3] + MARKER + b"{"
            self._second_us = sent_us - int(match[2]) * 1000
        return sent_us

    def _fetch(self, line: _FetchLine) -> Operated | None:
        request, response, remote_ms = line.request, line.response, line.remote_time_ms
        keys: list[str] = []
        required: list[int | None] = []
        for topic in request.topics or ():
            if (name := topic.name or topic.topic) is None and (name := self._name(topic)) is None:
                return None
            for partition in topic.partitions or ():
                keys.append(f"{name}-{partition.partition}")
                offset = partition.fetch_offset
                required.append(offset + 1 if offset >= 0 else None)
        if len(keys) > 1 and len(set(keys)) < len(keys):
            return None
        errors = [response.error_code] if response.error_code else []
        size: int | None = None
        for topic_result in response.responses or ():
            for partition_result in topic_result.partitions or ():
                if partition_result.error_code:
                    errors.append(partition_result.error_code)
                if partition_result.records_size_in_bytes is not UNSET:
                    size = (size or 0) + partition_result.records_size_in_bytes
        limit = request.max_wait_ms
        if not remote_ms:
            outcome: str | None = COMPLETED
        elif limit < 0:
            outcome = None
        else:
            outcome = EXPIRED if line.local_time_ms + remote_ms >= limit - EARLY_MS else COMPLETED
        replica = request.replica_id if request.replica_state is None else request.replica_state.replica_id
        if line.listener == "CONTROLLER" or (line.request_header.client_id or "").startswith("raft-client-"):
            kind = "FETCH_RAFT"
        else:
            kind = "FETCH_FOLLOWER" if replica >= 0 else "FETCH_CONSUMER"
        error = first_error(set(errors)) if errors else 0
        return kind, limit if limit >= 0 else None, keys, required, "any", outcome, error, size

    def _produce(self, line: _ProduceLine) -> Operated | None:
        bases: dict[str, int] = {}
        errors: list[int] = []
        for topic_result in line.response.responses or ():
            if (name := topic_result.name or topic_result.topic) is None and (name := self._name(topic_result)) is None:
                return None
            for partition_result in topic_result.partition_responses or ():
                if partition_result.error_code:
                    errors.append(partition_result.error_code)
                bases[f"{name}-{partition_result.index}"] = partition_result.base_offset
        keys: list[str] = []
        required: list[int | None] = []
        size: int | None = None
        for topic in line.request.topic_data or ():
            if (name := topic.name or topic.topic) is None and (name := self._name(topic)) is None:
                return None
            for partition in topic.partition_data or ():
                key = f"{name}-{partition.index}"
                base = bases.get(key, -1)
                keys.append(key)
                required.append(base + 1 if base >= 0 else None)
                if partition.records_size_in_bytes is not UNSET:
                    size = (size or 0) + partition.records_size_in_bytes
        if not bases or (len(keys) > 1 and len(set(keys)) < len(keys)):
            return None
        limit = line.request.timeout_ms
        outcome = EXPIRED if REQUEST_TIMED_OUT in errors else COMPLETED
        error = first_error(set(errors)) if errors else 0
        return "PRODUCE", limit if limit >= 0 else None, keys, required, "all", outcome, error, size

    def _name(self, topic: _Topic) -> str | None:
        """Return the name of a topic by its id, or the id if no name is known; None without an id."""
        return None if topic.topic_id is None else self._topics.get(topic.topic_id, topic.topic_id)


def _read(line: Any, sent_us: int, operation: Operated | None) -> Read:
    """Return the request of a decoded line and its operation."""
    header, remote_ms, send_ms = line.request_header, line.remote_time_ms, line.send_time_ms
    wait_us = round(remote_ms * 1000)
    start_us = sent_us - round((line.response_queue_time_ms + send_ms) * 1000) - wait_us
    times = line.local_time_ms, send_ms, line.throttle_time_ms
    return header.request_api_key_name, start_us, wait_us, remote_ms > 0, header.client_id or None, *times, operation


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
