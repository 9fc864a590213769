"""Which connections are still to be taken: where a backlog is full, the kernel tries again after 1, 3, 7 real seconds.

One to a listening socket of the same loop is taken sooner or later, for its server accepts. Of one to somewhere else on
this machine nobody knows, and two attempts are waited for; another machine is given what any socket is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

ATTEMPTS: Final = 3.5  # real seconds: the kernel's second attempt and its third, and what they take
_ANY: Final = ("0.0.0.0", "::")


class Pending(NamedTuple):
    """Connections that have not been taken."""

    here: list[str]  # descriptions of those to listening sockets of the same loop
    active: bool  # whether others are to be given time, up to `ATTEMPTS` of silence


class _Attempt:
    def __init__(self, address: Any) -> None:
        self.address = address
        self.waited = 0.0


class Connects:
    """Follows the calls of one loop's `sock_connect`, with which it makes all connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Of `loop`, from now on."""
        self._loop: Any = loop
        self._attempts: list[_Attempt] = []

    def watch(self) -> Callable[..., Any]:
        """Return `sock_connect` to put in the place of the loop's."""
        connect = self._loop.sock_connect

        async def sock_connect(sock: Any, address: Any) -> Any:
            attempt = _Attempt(address)
            self._attempts.append(attempt)
            try:
                return await connect(sock, address)
            finally:
                self._attempts.remove(attempt)

        return sock_connect

    def look(self, listening: Iterable[Any], waited: float) -> Pending:
        """Return what is pending; `listening` are addresses, `waited` the real seconds slept since the last look."""
        if not self._attempts:
            return Pending([], False)
        here, active, places = list[str](), False, list(listening)
        for attempt in self._attempts:
            host, port = _host_and_port(attempt.address)
            if any(port == _host_and_port(place)[1] and _is_at(host, place) for place in places):
                here.append(f"a connection to {host}:{port}, which is not taken yet")
            elif is_this_machine(host):
                attempt.waited += waited
                active = active or attempt.waited < ATTEMPTS
        return Pending(here, active)


def _host_and_port(address: Any) -> tuple[str, object]:
    return (str(address[0]), address[1]) if isinstance(address, tuple) and len(address) > 1 else (str(address), None)


def _is_at(host: str, place: Any) -> bool:
    listens = _host_and_port(place)[0]
    return host == listens or (listens in _ANY and is_this_machine(host)) or host == "localhost"


def is_this_machine(host: str) -> bool:
    """Return whether an address is one of this machine's own."""
    return host.startswith("127.") or host in ("::1", "localhost", *_ANY)
