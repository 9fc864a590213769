"""One operation of the API: its method and path, the schemas of request and response, and its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from abeyant.broker.control.schema import Schema

NOTHING: Mapping[str, Schema] = {}


class ControlRequest(NamedTuple):
    """The parameters and the body of a client's request, checked against the operation's schemas."""

    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Any


class Operation(NamedTuple):
    """An operation of the API: a method on a path. `openapi.PATHS` describes the parameters in braces in paths."""

    method: str
    path: str
    id: str
    """OpenAPI's operationId: the function's name in generated clients."""
    about: str
    run: Callable[[Any, ControlRequest], Any]
    """Called with the cluster's `Control` and the request, in a thread that may block."""
    answer: Schema | None = None
    """Schema of the JSON response (200); None for an empty response (204)."""
    query: Mapping[str, Schema] = NOTHING
    body: Schema | None = None
