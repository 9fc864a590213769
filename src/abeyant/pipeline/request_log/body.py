"""Read and check fields of a request's or a response's body; `BadLineError` says what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from abeyant.pipeline.request_log.line import ApiRequest, BadLineError

__all__ = ["integer", "is_raft", "items", "milliseconds", "replica_id", "text", "topic_name"]

_LONGEST_MS: Final = 2**31 - 1
"""Kafka's time-outs are 32-bit."""


def topic_name(topic: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return a topic's name, else its id as logged: PRODUCE 13 and FETCH 13 have ids only."""
    name = topic.get("name") or topic.get("topic")
    if name is not None:
        return text(name, "name")
    topic_id = text(topic["topicId"], "topicId")
    return names.get(topic_id, topic_id)


def items(body: Mapping[str, Any] | None, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list, none where it is missing."""
    value = None if body is None else body.get(name)
    if value is None:
        return
    if not isinstance(value, list):
        raise BadLineError(f"field {name} is a {type(value).__name__}, not a list")
    for item in value:
        if not isinstance(item, dict):
            raise BadLineError(f"field {name} holds a {type(item).__name__}, not an object")
        yield item


def integer(body: Mapping[str, Any] | None, name: str, default: int | None = None) -> int:
    """Return a field that is a whole number of 64 bits, or the default where it is missing."""
    value = body.get(name, default) if body is not None else default
    if value is None:
        raise BadLineError(f"no field {name}")
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadLineError(f"field {name} is a {type(value).__name__}, not an integer")
    if not -(2**63) <= value < 2**63 - 1:
        raise BadLineError(f"field {name} is {str(value)[:24]}, beyond 64 bits")
    return value


def milliseconds(body: Mapping[str, Any] | None, name: str) -> int | None:
    """Return a time-out in ms; None without a body or if negative, as -1 asks for the broker's own."""
    if body is None:
        return None
    timeout_ms = integer(body, name)
    if timeout_ms > _LONGEST_MS:
        raise BadLineError(f"field {name} is {timeout_ms}, beyond Kafka's 32 bits")
    return timeout_ms if timeout_ms >= 0 else None


def text(value: Any, name: str) -> str:
    """Return the value of a field that has to be text."""
    if not isinstance(value, str):
        raise BadLineError(f"field {name} is a {type(value).__name__}, not a str")
    return value


def is_raft(request: ApiRequest) -> bool:
    """Return whether a fetch is the metadata quorum's, not a partition's."""
    return request.listener == "CONTROLLER" or (request.client_id or "").startswith("raft-client-")


def replica_id(body: Mapping[str, Any]) -> int:
    """Return the id of the replica that fetches, -1 for a consumer; with version 15 it moved into a structure."""
    state = body.get("replicaState")
    return integer(body if state is None else state, "replicaId", -1)
