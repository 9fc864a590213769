"""The lines of Kafka 2.7 and older: the same facts as the later JSON, printed by Java's `toString`.

    Completed request:RequestHeader(apiKey=FETCH, apiVersion=11, clientId=c, correlationId=0) -- {replica_id=-1,
    max_wait_time=500,...},response:{...} from connection ...;totalTime:545.2,requestQueueTime:1.5,localTime:26.9,
    remoteTime:513.6,throttleTime:0,responseQueueTime:0.8,sendTime:2.1,securityProtocol:...

Bodies are turned into the shape that the JSON has. Nothing is quoted in them, so a value that holds a comma or a
bracket may not be readable: then the body is left out and what the rest of the line tells is kept. At DEBUG a
PRODUCE has no partitions; otherwise the levels do not differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["is_text", "text_request"]

_HEADER: Final = re.compile(
    r"RequestHeader\(apiKey=(?P<api>\w+), apiVersion=\d+, clientId=(?P<client>.*?), correlationId=-?\d+\) -- "
)
_TAIL: Final = re.compile(
    r" from connection \S*;totalTime:[\d.E-]+,requestQueueTime:[\d.E-]+,localTime:(?P<local>[\d.E-]+)"
    r",remoteTime:(?P<remote>[\d.E-]+),throttleTime:[\d.E-]+,responseQueueTime:(?P<queue>[\d.E-]+)"
    r",sendTime:(?P<send>[\d.E-]+),(?:.*,)?listener:(?P<listener>[^,\s]*)"
)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)=")
_SIMPLE: Final = re.compile(r"[^,{}()\[\]]+")
_INTEGER: Final = re.compile(r"-?\d+")
_PARTITION_SIZE: Final = re.compile(r"(.+)-(\d+)=(-?\d+)")
_DEEPEST: Final = 64


def is_text(text: str, at: int) -> bool:
    """Return whether the request at this place is in the old form."""
    return text.startswith("RequestHeader(", at)


def text_request(text: str, at: int) -> dict[str, Any]:
    """Return an old line's request in the shape of the JSON; raise `ValueError` with what is missing."""
    header = _HEADER.match(text, at)
    if header is None:
        raise ValueError("no request header")
    # The last one, for a body may hold anything.
    tail = _TAIL.match(text, max(text.rfind(" from connection "), 0))
    if tail is None:
        raise ValueError("the line ends before its times")
    api = header["api"]
    request, response = _bodies(text[header.end() : tail.start()])
    adapt = _ADAPTED.get(api, _as_it_is)
    try:
        adapt(request or {}, response or {})
    except (AttributeError, TypeError, KeyError):
        request = response = None
    return {
        "requestHeader": {"requestApiKeyName": api, "clientId": header["client"]},
        "request": request,
        "response": response,
        "listener": tail["listener"],
        **{
            name: float(tail[group])
            for name, group in (
                ("localTimeMs", "local"),
                ("remoteTimeMs", "remote"),
                ("responseQueueTimeMs", "queue"),
                ("sendTimeMs", "send"),
            )
        },
    }


def _bodies(text: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    try:
        request, end = _value(text, 0, 0)
        if not text.startswith(",response:", end) or not isinstance(request, dict):
            return None, None
        at = end + len(",response:")
        # acks=0 has no response.
        response, _ = _value(text, at, 0) if at < len(text) else (None, at)
    except ValueError:
        return None, None
    return request, response if isinstance(response, dict) else None


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Read one value: a structure, a list, or plain text; return it and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if text.startswith("{", at):
        found: dict[str, Any] = {}
        at += 1
        while not text.startswith("}", at):
            name = _NAME.match(text, at)
            if name is None:
                raise ValueError(f"no name: at character {at}")
            found[_camel(name[1])], at = _value(text, name.end(), depth + 1)
            at = _past_comma(text, at, "}")
        return found, at + 1
    if text.startswith("[", at):
        items: list[Any] = []
        at += 1
        while not text.startswith("]", at):
            item, at = _value(text, at, depth + 1)
            items.append(item)
            at = _past_comma(text, at, "]")
        return items, at + 1
    return _plain(text, at)


def _past_comma(text: str, at: int, end: str) -> int:
    if text.startswith(",", at):
        return at + 1 + (text.startswith(" ", at + 1))
    if text.startswith(end, at):
        return at
    raise ValueError(f"neither , nor {end}: at character {at}")


def _plain(text: str, at: int) -> tuple[Any, int]:
    """Read text up to the comma or bracket that ends it; a buffer prints brackets of its own, in pairs."""
    start, inside = at, 0
    if simple := _SIMPLE.match(text, at):
        at = simple.end()
    while at < len(text):
        char = text[at]
        if char in "([":
            inside += 1
        elif inside and char in ")]":
            inside -= 1
        elif not inside and char in ",}]":
            break
        at += 1
    else:
        raise ValueError("the text ends inside a value")
    value = text[start:at]
    if value == "null":
        return None, at
    return (int(value) if _INTEGER.fullmatch(value) else value), at


def _camel(name: str) -> str:
    first, *rest = name.split("_") if not name.startswith("_") else [name]
    return first + "".join(part.title() for part in rest)


def _as_it_is(request: dict[str, Any], response: dict[str, Any]) -> None:
    """Other bodies differ from the JSON in nothing that is read."""


def _adapt_produce(request: dict[str, Any], response: dict[str, Any]) -> None:
    if "timeout" in request:
        request["timeoutMs"] = request.pop("timeout")
    topics: dict[str, list[Mapping[str, Any]]] = {}
    for size in request.get("partitionSizes", []):
        named = _PARTITION_SIZE.fullmatch(size)
        if named is not None:
            topics.setdefault(named[1], []).append({"index": int(named[2])})
    request["topicData"] = [{"name": name, "partitionData": found} for name, found in topics.items()]
    for topic in response.get("responses", []):
        for partition in topic["partitionResponses"]:
            partition["index"] = partition.pop("partition")
    if not topics and response:
        # At DEBUG only the response names the partitions.
        request["topicData"] = [
            {"name": t["topic"], "partitionData": [{"index": p["index"]} for p in t["partitionResponses"]]}
            for t in response.get("responses", [])
        ]


def _adapt_fetch(request: dict[str, Any], response: dict[str, Any]) -> None:
    if "maxWaitTime" in request:
        request["maxWaitMs"] = request.pop("maxWaitTime")
    for topic in response.get("responses", []):
        topic["partitions"] = [partition["partitionHeader"] for partition in topic.pop("partitionResponses")]
        for partition in topic["partitions"]:
            partition["partitionIndex"] = partition.pop("partition")


_ADAPTED: Final = {"PRODUCE": _adapt_produce, "FETCH": _adapt_fetch}
