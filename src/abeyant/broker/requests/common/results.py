"""Build responses with one result per item of the request, each with its own error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode, Message

Failed = Callable[[Any, ErrorCode], Message]
"""A function that returns the result of an item that failed with this error."""


def results(
    items: Iterable[Any],
    result: Callable[[Any], Message] | ErrorCode,
    failed: Failed,
    *,
    key: str = "",
    repeated: str = "",
) -> list[Message]:
    """Return a list with `result(item)` for each item, or `failed(item, error)` if that raises ApiError.

    `result` may also be one error for all items. `key` names an attribute: items with the same value there get only one
    result, INVALID_REQUEST with the message `repeated`, in which {} stands for the value.
    """
    by_key: dict[object, list[Any]] = {}
    for index, item in enumerate(items):
        by_key.setdefault(getattr(item, key) if key else index, []).append(item)
    rows = []
    for value, group in by_key.items():
        try:
            if len(group) > 1:
                raise ApiError(ErrorCode.invalid_request, repeated.format(value) or None)
            row = failed(group[-1], result) if isinstance(result, ErrorCode) else result(group[-1])
        except ApiError as error:
            row = failed(group[-1], error.code)
            if error.message is not None:
                row.error_message = error.message
        rows.append(row)
    return rows


def by_topic(
    topics: Iterable[Any],
    result: Callable[[Any, Any], Message] | ErrorCode,
    failed: Failed,
    *,
    name: str = "name",
    partitions: str = "partitions",
    into: str = "partitions",
    key: str = "",
    repeated: str = "",
) -> list[Message]:
    """Return the topics of a request with the `results` of their partitions, by `result(topic, partition)`.

    `name` and `partitions` are attributes of a topic in the request; `into` is the attribute for its partitions'
    results in the response.
    """
    messages = []
    for topic in topics:
        item_result = result if isinstance(result, ErrorCode) else partial(result, topic)
        rows = results(getattr(topic, partitions), item_result, failed, key=key, repeated=repeated)
        messages.append(Message(**{name: getattr(topic, name), into: rows}))
    return messages
