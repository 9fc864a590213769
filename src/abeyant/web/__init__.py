"""A small HTTP server in a thread of its own, for the window, metrics and control of a running program.

    site = Site()
    site.get("/hello/{name}", lambda request: {"hello": request.params["name"]})
    site.post("/stop", lambda request: stop())
    with site.serve(port=8080) as server: print(server.url)

It is for one person and a few programs, on one machine: loopback by default, HTTP/1.1 without TLS.
h11 reads and writes the messages. `guard.py` refuses unsafe requests; `connection.py` limits what one client may use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.web.messages import Events, HttpError, Request, Response
    from abeyant.web.routes import Limits
    from abeyant.web.server import Server
    from abeyant.web.site import Site

__all__ = ["Events", "HttpError", "Limits", "Request", "Response", "Server", "Site"]

_HOMES = {
    name: home
    for home, names in {
        "messages": ("Events", "HttpError", "Request", "Response"),
        "routes": ("Limits",),
        "site": ("Site",),
        "server": ("Server",),
    }.items()
    for name in names
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, "window", ("h11",))
