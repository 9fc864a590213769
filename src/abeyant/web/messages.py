"""The request that a handler gets, and the responses that it may return."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from abeyant.errors import AbeyantError

JSON = "application/json"


class HttpError(AbeyantError):
    """Raised to refuse a request: an HTTP status, and one line that gives the reason."""

    def __init__(self, status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """`message` is sent to the client: put nothing secret in it."""
        super().__init__(message)
        self.status = status
        self.headers = headers


class Request(NamedTuple):
    """A request that has passed the guard."""

    method: str
    path: str  # the decoded path, without the query
    params: Mapping[str, str]  # decoded values of the route's {names}
    query: Mapping[str, str]  # decoded; a name given twice is refused before
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        """Return the body parsed as JSON; None if it is empty. Raises HttpError 415 or 400."""
        if not self.body:
            return None
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise HttpError(415, f"content-type is {kind or 'missing'}: send {JSON}")
        try:
            return json.loads(self.body, object_pairs_hook=_unambiguous)
        except ValueError as error:
            raise HttpError(400, f"the body is not JSON: {error}") from None
        except RecursionError:
            raise HttpError(400, "the body is nested too deeply") from None


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise HttpError(400, f"an object in the body has {name[:200]!r} twice: leave one out")
        members[name] = value
    return members


class Response(NamedTuple):
    """A response. A handler may return None (204), text, or anything that JSON can express instead."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Events(NamedTuple):
    """A stream of server-sent events: each item of `source` is sent as JSON, as long as the client reads.

    The next item is taken only when the last one is sent, so a slow reader holds one item in memory, not a queue.
    """

    source: AsyncIterator[object]


Result = Any  # the return value of a handler: see Response
Handler = Callable[[Request], Result | Awaitable[Result]]


def as_json(value: object, status: int = 200) -> Response:
    """Return a JSON response. NaN and infinity, which JSON lacks, raise ValueError."""
    return Response(status, dumped(value))


def dumped(value: object) -> bytes:
    """Return `value` as compact JSON in UTF-8. A lone surrogate, which UTF-8 lacks, is escaped."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode()


def to_response(result: Result) -> Response:
    """Convert a handler's result to a response."""
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(204)
    if isinstance(result, str):
        return Response(200, result.encode(), "text/plain; charset=utf-8")
    return as_json(result)
