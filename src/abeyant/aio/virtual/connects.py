"""Track connections that are not accepted yet. If a backlog is full, the kernel retries after 1, 3, 7 real seconds.

The clock waits for a connection to a listening socket of the same loop, as this loop will accept it. It waits
for a connection to another socket of this machine as long as two retries take (`ATTEMPTS`), and for a connection to
another machine `io_grace`, as for any socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

ATTEMPTS: Final = 3.5  # real seconds: up to the kernel's second retry, and some time for it
_ANY: Final = ("0.0.0.0", "::")


class Pending(NamedTuple):
    """Connections that are not accepted yet."""

    here: list[str]  # descriptions of connections to listening sockets of the same loop
    active: bool  # whether to wait for other connections, up to `ATTEMPTS` seconds


class _Attempt:
    def __init__(self, address: Any) -> None:
        self.address = address
        self.waited = 0.0


class Connects:
    """A tracker of pending calls of a loop's `sock_connect`, through which the loop makes all its connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Track calls on `loop`, once the wrapper from `watch` is installed."""
        self._loop: Any = loop
        self._attempts: list[_Attempt] = []

    def watch(self) -> Callable[..., Any]:
        """Return a wrapper of the loop's `sock_connect` that tracks pending calls. The caller installs it."""
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
        """Return the pending connections. `listening` has the addresses of the loop's listening sockets.

        `waited` are the real seconds slept since the last call.
        """
        if not self._attempts:
            return Pending([], False)
        descriptions, active, addresses = list[str](), False, list(listening)
        for attempt in self._attempts:
            host, port = _host_and_port(attempt.address)
            if any(port == _host_and_port(address)[1] and _reaches(host, address) for address in addresses):
                descriptions.append(f"a connection to {host}:{port}, which is not accepted yet")
            elif is_this_machine(host):
                attempt.waited += waited
                active = active or attempt.waited < ATTEMPTS
        return Pending(descriptions, active)


def _host_and_port(address: Any) -> tuple[str, object]:
    return (str(address[0]), address[1]) if isinstance(address, tuple) and len(address) > 1 else (str(address), None)


def _reaches(host: str, address: Any) -> bool:
    listening_host = _host_and_port(address)[0]
    return host == listening_host or (listening_host in _ANY and is_this_machine(host)) or host == "localhost"


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine: localhost, a loopback address, or 0.0.0.0 or ::."""
    return host.startswith("127.") or host in ("::1", "localhost", *_ANY)
