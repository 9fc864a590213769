"""Refuse requests before any handler runs: for other hosts, from other origins, and beyond loopback without a token.

A page from elsewhere, open in a browser on this machine, can send requests to loopback. Three things keep it out:

* *Host* must be an address, a name of this machine, or an allowed name. So an attacker's name that resolves to this
  machine (DNS rebinding) is refused: a browser sends that name as Host.
* *Origin*, which browsers send with all requests that may change state, must be this site's own; and Sec-Fetch-Site
  must be "same-origin" or "none", unless the user followed a link.
* No CORS header is sent, so no other origin can read a response.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from abeyant.errors import AbeyantError
from abeyant.web.messages import HttpError

_SAFE = ("GET", "HEAD")
_ALLOW = "by hosts= or abeyant broker --advertise"


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or an address, is reachable from this machine only (loopback)."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Checks the host, the origin and the token of requests. Raises HttpError: 401, 403 or 421."""

    def __init__(self, host: str, token: str | None, hosts: Collection[str] = ()) -> None:
        """`token` may be None on loopback only; `hosts` are further names of this machine that clients use.

        Raises AbeyantError for a host beyond loopback without a token, and for a token that is too short or not ASCII.
        """
        if token is not None and (len(token) < 8 or not token.isascii() or not token.isprintable() or " " in token):
            raise AbeyantError("the token is invalid: it must be at least 8 printable ASCII characters without spaces")
        if token is None and not is_loopback(host):
            raise AbeyantError(f"{host} is not loopback, so others can reach it: give a token, or listen on 127.0.0.1")
        self._token = token
        self._names = {"localhost", host.lower(), socket.gethostname().lower(), *(name.lower() for name in hosts)}

    def check(self, method: str, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        """Raise HttpError unless the host, the origin and the token of a request are allowed."""
        host = headers.get("host", "")
        if not self._is_own_address(host):
            raise HttpError(421, f"host {host[:200]!r} is not served here: use an address, or allow the name, {_ALLOW}")
        self._check_origin(method, headers, host)
        if self._token is not None:
            self._check_token(method, headers, query, self._token)

    def _is_own_address(self, authority: str) -> bool:
        try:
            parts = urlsplit(f"//{authority}")
            name = parts.hostname
            _ = parts.port  # raises where it is no number
        except ValueError:
            return False
        if not name or parts.username is not None or parts.path:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _check_origin(self, method: str, headers: Mapping[str, str], host: str) -> None:
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            raise HttpError(403, f"origin {origin[:200]!r} is another site: send requests from this site's pages")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            followed = method in _SAFE and headers.get("sec-fetch-mode") == "navigate"
            if not followed or headers.get("sec-fetch-dest", "document") != "document":
                raise HttpError(403, "this request comes from another site's page")

    def _check_token(self, method: str, headers: Mapping[str, str], query: Mapping[str, str], token: str) -> None:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            credentials = query.get("token", "") if method in _SAFE else ""  # a browser's event stream has no header
        if not hmac.compare_digest(credentials.strip().encode(), token.encode()):
            message = "a token is required: Authorization: Bearer TOKEN, or with GET ?token=TOKEN"
            raise HttpError(401, message, (("www-authenticate", "Bearer"),))
