"""Lines as Kafka writes them, made from a few fields: for what no genuine log of ours holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from abeyant.pipeline.request_log.line import naming_lines, topic_names


def names_told(lines: Iterable[bytes]) -> dict[str, str]:
    """The topics' names by their ids, read from the few lines that may tell them."""
    return dict(pair for one in naming_lines(b"\n".join(lines)) for pair in topic_names(one))


def line(
    api: str = "PRODUCE",
    request: Any = "",
    response: Any = "",
    *,
    sent: str = "2026-11-21 10:00:01,000",
    remote: float = 0.0,
    local: float = 0.25,
    queue: float = 0.1,
    send: float = 0.2,
    **changes: Any,
) -> bytes:
    """Make a line; `changes` replace top-level fields, and None removes one."""
    body: dict[str, Any] = {
        "isForwarded": False,
        "requestHeader": {"requestApiKeyName": api, "correlationId": 7, "clientId": "client"},
        "request": request,
        "response": response,
        "connection": "127.0.0.1:9092-127.0.0.1:50000-0-1",
        "totalTimeMs": local + remote + queue + send,
        "requestQueueTimeMs": 0.0,
        "localTimeMs": local,
        "remoteTimeMs": remote,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": queue,
        "sendTimeMs": send,
        "listener": "PLAINTEXT",
    }
    body = {name: value for name, value in (body | changes).items() if value is not None}
    text = json.dumps(body, separators=(",", ":"))
    return f"[{sent}] DEBUG Completed request:{text} (kafka.request.logger)".encode()


def produce(error_code: int = 0, timeout_ms: int = 30_000, base_offset: int = 41, **more: Any) -> bytes:
    """Make an acks=all PRODUCE to orders-0."""
    request = {
        "acks": -1,
        "timeoutMs": timeout_ms,
        "topicData": [{"name": "orders", "partitionData": [{"index": 0, "recordsSizeInBytes": 9}]}],
    }
    partition = {"index": 0, "errorCode": error_code, "baseOffset": base_offset}
    response = {"responses": [{"name": "orders", "partitionResponses": [partition]}]}
    return line("PRODUCE", request, response, **more)


def fetch(max_wait_ms: int = 500, offset: int = 10, **more: Any) -> bytes:
    """Make a consumer's FETCH of topic id `t`, partition 3."""
    request = {
        "maxWaitMs": max_wait_ms,
        "minBytes": 1,
        "topics": [{"topicId": "t", "partitions": [{"partition": 3, "fetchOffset": offset}]}],
    }
    return line("FETCH", request, {"errorCode": 0, "responses": []}, **more)
