"""Read and check fields of a request's or a response's body; a field of wrong type or size raises `BadLineError`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from abeyant.pipeline.request_log.line import ApiRequest, BadLineError

__all__ = ["integer", "is_raft", "items", "milliseconds", "replica_id", "text", "topic_name"]

_LONGEST_MS: Final = 2**31 - 1
"""The longest time-out in ms: Kafka's time-outs are 32-bit integers."""


def topic_name(topic: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return a topic's name: from the body, or from `names` by the topic's id; the id itself if no name is known.

    From version 13 on, PRODUCE and FETCH have topic ids only.
    """
    name = topic.get("name") or topic.get("topic")
    if name is not None:
        return text(name, "name")
    topic_id = text(topic["topicId"], "topicId")
    return names.get(topic_id, topic_id)


def items(body: Mapping[str, Any] | None, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in the list field `name`; nothing if the field is missing or null."""
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
    """Return the 64-bit integer in the field `name`, or the default if the field is missing."""
    value = body.get(name, default) if body is not None else default
    if value is None:
        raise BadLineError(f"no field {name}")
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadLineError(f"field {name} is a {type(value).__name__}, not an integer")
    if not -(2**63) <= value < 2**63 - 1:
        raise BadLineError(f"field {name} is {str(value)[:24]}, beyond 64 bits")
    return value


def milliseconds(body: Mapping[str, Any] | None, name: str) -> int | None:
    """Return the time-out in the field `name`, in ms; None without a body or if negative: -1 means the broker's own."""
    if body is None:
        return None
    timeout_ms = integer(body, name)
    if timeout_ms > _LONGEST_MS:
        raise BadLineError(f"field {name} is {timeout_ms}, beyond Kafka's 32 bits")
    return timeout_ms if timeout_ms >= 0 else None


def text(value: Any, name: str) -> str:
    """Return `value`, the value of the field `name`, if it is text; else raise `BadLineError`."""
    if not isinstance(value, str):
        raise BadLineError(f"field {name} is a {type(value).__name__}, not a str")
    return value


def is_raft(request: ApiRequest) -> bool:
    """Return whether a fetch replicates the metadata log of a KRaft quorum, not a topic's partition."""
    return request.listener == "CONTROLLER" or (request.client_id or "").startswith("raft-client-")


def replica_id(body: Mapping[str, Any]) -> int:
    """Return the id of the replica that fetches, -1 for a consumer. From version 15 on, `replicaState` holds the id."""
    state = body.get("replicaState")
    return integer(body if state is None else state, "replicaId", -1)
