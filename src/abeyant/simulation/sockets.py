"""Simulated sockets, which `socket.socket` and `socket.create_server` return while a simulation runs."""

from __future__ import annotations

import contextvars
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Never

from abeyant.simulation.errors import SimulationError
from abeyant.simulation.ports import OWNER, Address, Life, Network
from abeyant.simulation.transport import Endpoint


class SimulatedSocket:
    """A TCP socket for `loop.sock_connect` and `loop.create_connection(sock=)`; it cannot send or receive directly."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, *args: Any, endpoint: Endpoint | None = None, **kwargs: Any) -> None:
        """Take the arguments of `socket.socket`. Raises SimulationError unless it is a stream over TCP."""
        options = dict(zip(("family", "type", "proto", "fileno"), args, strict=False)) | kwargs
        if options.get("fileno") is not None:
            raise SimulationError("a simulation cannot take over a file descriptor: make a new socket")
        family, kind = options.get("family", socket.AF_INET), options.get("type", socket.SOCK_STREAM)
        if family not in (-1, socket.AF_INET, socket.AF_INET6) or kind not in (-1, socket.SOCK_STREAM):
            raise SimulationError(f"a simulation's network carries TCP only, not a socket of {family!r} and {kind!r}")
        self.endpoint = endpoint
        self._open = True

    def setblocking(self, flag: bool) -> None:
        """Accept non-blocking mode. Raises SimulationError for blocking mode, which would block for ever."""
        if flag:
            raise SimulationError("a simulated socket cannot block: use asyncio's streams")

    def settimeout(self, timeout: float | None) -> None:
        """Accept 0, as `setblocking(False)` does. Raises SimulationError for other time-outs, which would block."""
        self.setblocking(timeout != 0)

    def gettimeout(self) -> float:
        """Return 0: the socket never blocks."""
        return 0.0

    def setsockopt(self, *_: Any) -> None:
        """Do nothing: no option changes this network."""

    def getsockopt(self, *_: Any) -> int:
        """Return 0."""
        return 0

    def fileno(self) -> int:
        """Return a number that no file has; -1 once the socket is closed."""
        return 1 << 30 if self._open else -1

    def getsockname(self) -> Address:
        """Return the local address."""
        return self.endpoint.local if self.endpoint else ("0.0.0.0", 0)

    def getpeername(self) -> Address:
        """Return the other end's address. Raises OSError if the socket is not connected."""
        if self.endpoint is None:
            raise OSError(107, "Transport endpoint is not connected")
        return self.endpoint.remote

    def shutdown(self, how: int) -> None:
        """Reset the connection, whatever `how` is."""
        if self.endpoint is not None:
            self.endpoint.abandon()

    def close(self) -> None:
        """Close the socket; close its connection, too, unless a transport uses the connection."""
        self._open = False
        if self.endpoint is not None and self.endpoint.transport is None:
            self.endpoint.abandon()

    def detach(self) -> int:
        """Mark the socket as closed, keep its connection open, and return -1."""
        self._open = False
        return -1

    def _refuse(self, *_: Any, **__: Any) -> Never:
        raise SimulationError(
            "a simulated socket cannot bind, connect, send or receive: use asyncio's streams, or loop.create_connection"
        )

    bind = connect = connect_ex = listen = accept = send = sendall = sendto = recv = recv_into = recvfrom = _refuse
    makefile = sendfile = _refuse

    def __enter__(self) -> SimulatedSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ListeningSocket:
    """A socket that listens in a simulation's network; for `loop.add_reader` and `loop.create_server(sock=)`."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, network: Network, address: Address, backlog: int) -> None:
        """Bind and listen. Raises OSError if the port is taken."""
        self.owner: Life | None = OWNER.get()
        self._network = network
        self._backlog = max(backlog, 1)
        self._pending: deque[Endpoint] = deque()
        self._reader: Callable[[], object] | None = None
        self._context = contextvars.copy_context()  # of the reader's process, which owns accepted connections
        self._open = True
        self._scheduled = False
        self.address = network.bind(self, address)

    def offer(self, endpoint: Endpoint) -> bool:
        """Queue a client that connects; return False if the backlog is full."""
        if len(self._pending) >= self._backlog:
            return False
        self._pending.append(endpoint)
        self._wake()
        return True

    def accept(self) -> tuple[SimulatedSocket, Address]:
        """Return the next client. Raises BlockingIOError if there is none."""
        if not self._pending:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        endpoint = self._pending.popleft()
        endpoint.owner = OWNER.get()
        return SimulatedSocket(endpoint=endpoint), endpoint.remote

    def set_reader(self, callback: Callable[[], object] | None) -> None:
        """Call `callback` in each turn of the loop in which clients wait to be accepted; None ends these calls."""
        self._reader, self._context = callback, contextvars.copy_context()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and self._pending and not self._scheduled:
            self._scheduled = True
            self._network.loop.call_soon(self._ready, context=self._context)

    def _ready(self) -> None:
        self._scheduled = False
        if self._reader is not None and self._pending:
            self._reader()
            self._wake()

    def setblocking(self, flag: bool) -> None:
        """Do nothing: the socket never blocks."""

    def setsockopt(self, *_: Any) -> None:
        """Do nothing: no option changes this network."""

    def getsockname(self) -> Address:
        """Return the address at which the socket listens."""
        return self.address

    def fileno(self) -> int:
        """Return a number that no file has; -1 once the socket is closed."""
        return 1 << 30 if self._open else -1

    def close(self) -> None:
        """Stop listening, and disconnect clients not yet accepted. A second call does nothing."""
        if self._open:
            self._open = False
            self._reader = None
            self._network.unbind(self)
            while self._pending:
                self._pending.popleft().abandon()
