"""Routes by method and path, and the limits of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from abeyant.web.messages import Handler, HttpError


class Limits(NamedTuple):
    """Limits for clients. Beyond a limit, requests are refused (408, 413, 431, 503) or connections are closed."""

    body: int = 1 << 20  # bytes of a request's body
    head: int = 16 << 10  # bytes of a request's line and headers
    connections: int = 256  # at once, of all clients
    streams: int = 32  # event streams at once, of all clients
    receive: float = 10.0  # seconds for a whole request, from its first byte
    idle: float = 60.0  # seconds between a connection's requests
    send: float = 10.0  # seconds for a client to read from a full send buffer


class Routes:
    """Routes by method and path. For the path `/faults/{id}`, the request's `params` have `id`.

    A plain handler runs in a thread of its own and may block; an `async def` runs on the server's loop and may not.
    If a handler raises AbeyantError, the response is a 400 with its message; HttpError brings its own status. Any other
    error is a 500 and is logged.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        """`limits` bounds what one client, and all clients together, may use (default: `Limits()`)."""
        self.limits = Limits() if limits is None else limits
        self._routes: dict[tuple[str, ...], dict[str, Handler]] = {}

    def get(self, path: str, handler: Handler) -> None:
        """Add a route for GET and HEAD. The handler must not change state: a link on another site could call it."""
        self.add("GET", path, handler)

    def post(self, path: str, handler: Handler) -> None:
        """Add a route for POST."""
        self.add("POST", path, handler)

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Add a route. Raises ValueError if it exists already, or if the path does not begin with a slash."""
        if not path.startswith("/"):
            raise ValueError(f"a path begins with a slash, not {path!r}")
        methods = self._routes.setdefault(tuple(path[1:].split("/")), {})
        if method in methods:
            raise ValueError(f"{method} {path} has a handler already")
        methods[method] = handler

    def find(self, method: str, raw_path: str) -> tuple[Handler, Mapping[str, str]]:
        """Return the handler of a request and the values of the path's {names}. Raises HttpError 404 or 405."""
        segments = [unquote(segment, errors="replace") for segment in raw_path[1:].split("/")]
        allowed: set[str] = set()
        for pattern, methods in self._routes.items():
            params = _match(pattern, segments)
            if params is None:
                continue
            handler = methods.get("GET" if method == "HEAD" else method)
            if handler is not None:
                return handler, params
            allowed |= methods.keys()
        if allowed:
            listed = ", ".join(sorted(allowed))
            head = ", HEAD" if "GET" in allowed else ""
            raise HttpError(405, f"{method} is not possible here: use {listed}", (("allow", listed + head),))
        raise HttpError(404, f"there is nothing at {raw_path[:200]}")


def _match(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    params = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            params[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return params
