"""A broker's listening socket, which accepts clients until it is closed.

It replaces asyncio's `Server`: on Python 3.11, if a client connects in the turn of the loop in which the `Server` is
closed, the client's connection is neither served nor closed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from abeyant.broker.wire.connection import Connection
from abeyant.broker.wire.quotas import ConnectionQuotas
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.purgatory.ports import Timer

_BACKLOG = 1024  # clients that the system queues
_CLIENTS = 8  # accepted in a turn of the loop, so that connected clients get theirs
_PAUSE = 1.0  # seconds without accepting after an error of `accept`


class Listener:
    """A listening socket. Use from the loop's thread only."""

    def __init__(
        self,
        host: str,
        port: int,
        connection: Callable[[], Connection],
        quotas: ConnectionQuotas,
        timer: Timer,
        now: Callable[[], float],
        tls: ssl.SSLContext | None,
    ) -> None:
        """Listen on `port` (0: any free port). `connection` creates a client's protocol; `now` returns seconds.

        Raises OSError.
        """
        self.tls = tls
        self._quotas = quotas
        self._full = False  # whether `max.connections` is reached
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._timer = timer
        self._now = now
        self._delayed: socket.socket | None = None  # accepted, and delayed by the connection rate
        self._throttled: set[socket.socket] = set()  # accepted, and closed after a delay
        self._handshakes: dict[asyncio.Task[Any], socket.socket] = {}  # the loop itself holds tasks weakly
        self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Stop accepting and free the port. Disconnect clients whose handshake is in progress."""
        if not self._closed:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            for one in (*self._throttled, *([] if self._delayed is None else [self._delayed])):
                one.close()
            for client in self._handshakes.values():  # else a silent one lasts a minute, the handshake's time-out
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def check_room(self) -> None:
        """Accept clients again if `max.connections` allows. Call after a connection ended or the limit changed."""
        if self._full and not self._quotas.full:
            self._full = False
            self._go_on()

    @property
    def _closed(self) -> bool:
        return self._socket.fileno() < 0

    def _accept(self) -> None:
        for _ in range(_CLIENTS):
            if self._quotas.full:
                self._full = True
                self._loop.remove_reader(self._socket)
                return
            try:
                client, (address, _port) = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # most likely too many open files
                logger("broker").error("port %d accepts no clients for %g s: %s", self.port, _PAUSE, error)
                self._loop.remove_reader(self._socket)
                self._timer.call_later(_PAUSE, self._go_on)
                return
            if delay := self._quotas.delay(self._now()):
                self._delayed = client
                self._loop.remove_reader(self._socket)
                self._timer.call_later(delay, self._end_delay, client, address)
                return
            self._admit(client, address)

    def _end_delay(self, client: socket.socket, address: str) -> None:
        self._delayed = None
        if not self._closed:
            self._admit(client, address)
            self._go_on()

    def _admit(self, client: socket.socket, address: str) -> None:
        """Serve a client, or close it if its address has too many connections, or opens too many per second."""
        if delay := self._quotas.delay_of(address, self._now()):
            self._throttled.add(client)
            self._timer.call_later(delay, self._close_throttled, client)
            return
        if refusal := self._quotas.refusal(address):
            logger("broker").warning("port %d refuses a client: %s", self.port, refusal)
            client.close()
            return
        client.setblocking(False)
        connection = self._connection()
        self._quotas.enter(connection, address)
        task = self._loop.create_task(self._handshake(client, connection))
        self._handshakes[task] = client
        task.add_done_callback(self._handshakes.pop)

    def _close_throttled(self, client: socket.socket) -> None:
        self._throttled.discard(client)
        client.close()

    async def _handshake(self, client: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, client, ssl=self.tls)
        except OSError as error:  # not a TLS client, or one that does not trust the certificate
            self._quotas.leave(connection)
            self.check_room()
            if not self._closed:
                left = "the client left during the TLS handshake: does it trust the broker's certificate?"
                why = str(error) or (left if self.tls is not None else type(error).__name__)
                logger("broker").warning("port %d refuses a client: %s", self.port, why)

    def _go_on(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._socket, self._accept)
