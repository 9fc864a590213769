"""A site: routes that a server offers over HTTP."""

from __future__ import annotations

from collections.abc import Collection

from abeyant.web.guard import Guard
from abeyant.web.routes import Routes
from abeyant.web.server import Server

_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # not addresses for clients: loopback instead


class Site(Routes):
    """Routes by method and path, which `serve` offers over HTTP."""

    def serve(
        self, host: str = "127.0.0.1", port: int = 0, *, token: str | None = None, hosts: Collection[str] = ()
    ) -> Server:
        """Serve in a new thread; return the server, which is a context manager. Port 0 picks a free one.

        Beyond loopback a `token` is required. `hosts` are further names by which clients reach this machine: if the
        server listens on all addresses, its `url` has the first of them, or loopback. Raises AbeyantError if the
        port is taken or a token is missing.
        """
        name = next(iter(hosts), _ALL[host]) if host in _ALL else host
        return Server(self, Guard(host, token, hosts), host, port, name)
