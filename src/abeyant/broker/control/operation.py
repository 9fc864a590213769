"""One operation of the API: how it is called, what it takes and gives, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from abeyant.broker.control.schema import Schema

NOTHING: Mapping[str, Schema] = {}


class Given(NamedTuple):
    """What a client has sent, checked."""

    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Any


class Operation(NamedTuple):
    """A method on a path. `{names}` of the path are described in `openapi.PATHS`."""

    method: str
    path: str
    id: str
    """For the functions of generated clients."""
    about: str
    run: Callable[[Any, Given], Any]
    """Called with the cluster's `Control`, in a thread that may block."""
    answer: Schema | None = None
    """Of the JSON with 200; None where there is none, and 204."""
    query: Mapping[str, Schema] = NOTHING
    body: Schema | None = None
    group: str = ""
    """Of related operations, in the description."""
