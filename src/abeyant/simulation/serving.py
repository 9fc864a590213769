"""Connecting and serving in a simulation: the methods of asyncio's loop that use the network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never

from abeyant.simulation.errors import SimulationError
from abeyant.simulation.ports import Address
from abeyant.simulation.sockets import ListeningSocket, SimulatedSocket
from abeyant.simulation.transport import Endpoint, Transport

if TYPE_CHECKING:
    from abeyant.simulation.network import Network

_Protocol = asyncio.BaseProtocol


class Server(asyncio.AbstractServer):
    """The server that `loop.create_server` returns."""

    def __init__(self, loop: Serving, listening: list[ListeningSocket], factory: Callable[[], _Protocol]) -> None:
        self._loop = loop
        self._listening = listening
        self._factory = factory
        self._serving = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def sockets(self) -> tuple[ListeningSocket, ...]:
        """Return the listening sockets; `getsockname()` returns their addresses."""
        return tuple(self._listening)

    def get_loop(self) -> Any:
        """Return the loop."""
        return self._loop

    def is_serving(self) -> bool:
        """Return whether the server accepts clients."""
        return self._serving

    async def start_serving(self) -> None:
        """Accept clients."""
        self._serve()

    def _serve(self) -> None:
        if not self._serving:
            self._serving = True
            for one in self._listening:
                one.set_reader(lambda one=one: self._accept(one))  # type: ignore[misc]

    def _accept(self, listening: ListeningSocket) -> None:
        try:
            client, _ = listening.accept()
        except BlockingIOError:
            return
        assert client.endpoint is not None
        Transport(client.endpoint, self._factory())

    async def serve_forever(self) -> None:
        """Accept clients until cancelled, then close."""
        self._serve()
        try:
            await self._loop.create_future()
        finally:
            self.close()

    def close(self) -> None:
        """Accept no more clients. Connections stay."""
        self._serving = False
        for one in self._listening:
            one.close()
        self._listening = []
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def close_clients(self) -> None:
        """Do nothing: a simulation leaves connections to their protocols."""

    abort_clients = close_clients

    async def wait_closed(self) -> None:
        """Wait until the server is closed."""
        if self._listening:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()


class Serving:
    """A mixin with the event loop's methods for connections; name it before the loop class that it overrides."""

    network: Network

    create_future: Callable[[], asyncio.Future[Any]]

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[tuple[Any, ...]]:
        """Return the address of a host in the simulated network, as a list of one."""
        if isinstance(host, bytes):
            host = host.decode()
        address = self.network.resolve(host), int(port or 0)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    async def getnameinfo(self, sockaddr: Address, flags: int = 0) -> tuple[str, str]:
        """Return the host as it is, and the port as a string."""
        return sockaddr[0], str(sockaddr[1])

    async def create_connection(
        self,
        protocol_factory: Callable[[], _Protocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        **_: Any,
    ) -> tuple[Transport, _Protocol]:
        """Connect as asyncio does. Raises OSError if nobody listens, SimulationError for TLS and real sockets."""
        _refuse_tls(ssl)
        if sock is not None:
            endpoint = _endpoint_of(sock)
        elif host is None or port is None:
            raise ValueError("host and port was not specified and no sock specified")
        else:
            endpoint = await self._connect(host, int(port))
        made = self.create_future()
        protocol = protocol_factory()
        transport = Transport(endpoint, protocol, made)
        try:
            await made
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def _connect(self, host: str, port: int) -> Endpoint:
        await asyncio.sleep(self.network.handshake(port))
        return self.network.connect(host, port)

    async def sock_connect(self, sock: Any, address: Address) -> None:
        """Connect a socket that was made in the simulation."""
        if not isinstance(sock, SimulatedSocket):
            raise SimulationError(f"a simulation cannot connect {sock!r}: make the socket while the simulation runs")
        sock.endpoint = await self._connect(address[0], address[1])

    async def connect_accepted_socket(
        self, protocol_factory: Callable[[], _Protocol], sock: Any, *, ssl: Any = None, **_: Any
    ) -> tuple[Transport, _Protocol]:
        """Serve a client that a listening socket has accepted."""
        _refuse_tls(ssl)
        protocol = protocol_factory()
        made = self.create_future()
        transport = Transport(_endpoint_of(sock), protocol, made)
        await made
        return transport, protocol

    async def create_server(
        self,
        protocol_factory: Callable[[], _Protocol],
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        *,
        sock: Any = None,
        backlog: int = 100,
        ssl: Any = None,
        start_serving: bool = True,
        **_: Any,
    ) -> Server:
        """Listen as asyncio does. Raises OSError if the port is taken, SimulationError for TLS and real sockets."""
        _refuse_tls(ssl)
        if sock is not None:
            if not isinstance(sock, ListeningSocket):
                raise SimulationError(f"a simulation cannot listen on {sock!r}: give host and port instead")
            listening = [sock]
        else:
            hosts = [host] if host is None or isinstance(host, str) else list(host)
            listening = [ListeningSocket(self.network, (one or "", port or 0), backlog) for one in hosts]
        server = Server(self, listening, protocol_factory)
        if start_serving:
            server._serve()
        return server

    def _refuse_udp(self, *_: Any, **__: Any) -> Never:
        raise SimulationError("a simulation cannot send datagrams, as its network carries TCP only: use a connection")

    def _refuse_unix(self, *_: Any, **__: Any) -> Never:
        raise SimulationError("a simulation has no Unix sockets: connect by host and port")

    def _refuse_subprocess(self, *_: Any, **__: Any) -> Never:
        raise SimulationError("a simulation cannot start a subprocess: run its code as a process of the simulation")

    def _refuse_pipe(self, *_: Any, **__: Any) -> Never:
        raise SimulationError("a simulation has no pipes: connect by host and port")

    def _refuse_tls_upgrade(self, *_: Any, **__: Any) -> Never:
        _refuse_tls(True)
        raise AssertionError

    def _refuse_socket(self, *_: Any, **__: Any) -> Never:
        raise SimulationError(
            "a simulation cannot use sockets directly: use asyncio's streams, or loop.create_connection"
        )

    create_datagram_endpoint = _refuse_udp
    create_unix_connection = create_unix_server = _refuse_unix
    subprocess_exec = subprocess_shell = _refuse_subprocess
    connect_read_pipe = connect_write_pipe = _refuse_pipe
    start_tls = _refuse_tls_upgrade
    sock_recv = sock_recv_into = sock_recvfrom = sock_sendall = sock_sendto = sock_accept = _refuse_socket
    add_writer = remove_writer = _refuse_socket


def _refuse_tls(ssl: Any) -> None:
    if ssl:
        raise SimulationError("a simulation has no TLS: connect in plaintext, as the same code does with ssl=None")


def _endpoint_of(sock: Any) -> Endpoint:
    if not isinstance(sock, SimulatedSocket) or sock.endpoint is None:
        raise SimulationError(f"{sock!r} is no connected socket of the simulation: give host and port instead")
    return sock.endpoint
