"""One connection: frames in, frames out, one request at a time.

Ground rules
------------
* All connections of a cluster receive into one buffer (`Staging`), for each is read and emptied within one call of the
  loop's: an idle connection has no buffer. What is left of a frame moves to the connection's own, which grows with
  the bytes that have come and never before them, so that to announce a gigabyte costs nobody a gigabyte (K9).
* A frame that is handed out is a view of that buffer, and good until `receive` returns: whoever keeps it copies it.
* While a request is in work (`_busy`), or the client does not take its answers (`_choked`), nothing is parsed. What
  has been read meanwhile, at most one staging buffer, waits in `_backlog`; the rest waits in the socket. So answers
  leave in the order of requests (K10), and a client that does not read costs one answer.
* The next request is begun by the loop and never from inside `answer`: an answer is often given from deep inside the
  work of another connection.
* Of requests that are answered at once, a connection that has sent many has a few in each turn of the loop: then it is
  the others' turn.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import TYPE_CHECKING, Protocol, cast

from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.security.login import Login

_LENGTH = Struct(">i")
_STAGING = 256 * 1024
# What other clients begin with, by mistake: a length of hundreds of megabytes.
_OTHERS = {b"\x16\x03": "TLS, which this listener does not", b"GET ": "HTTP", b"POST": "HTTP", b"HEAD": "HTTP"}
_REQUESTS = 16  # in a turn of the loop, of one connection: about a millisecond


class Receiver(Protocol):
    """The handler of what connections receive: a broker."""

    def connected(self, connection: Connection) -> None:
        """Register a new connection."""

    def receive(self, connection: Connection, frame: memoryview) -> None:
        """Handle a request, and end with `connection.answer` or `connection.close`, now or later."""

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection that has ended."""


class Staging:
    """The buffer into which all connections of a loop receive."""

    __slots__ = ("_readable", "writable")

    def __init__(self) -> None:
        self.writable = memoryview(bytearray(_STAGING))
        self._readable = self.writable.toreadonly()

    def first(self, count: int) -> memoryview:
        """Return the first `count` bytes."""
        return self._readable[:count]


class Connection(asyncio.BufferedProtocol):
    """A client's connection to a broker."""

    __slots__ = (
        "_backlog",
        "_busy",
        "_choked",
        "_filled",
        "_frame",
        "_goes_on",
        "_loop",
        "_max_request",
        "_need",
        "_paused",
        "_receiver",
        "_staging",
        "_transport",
        "client_id",
        "host",
        "login",
        "peer",
        "software",
        "user",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, receiver: Receiver, staging: Staging, max_request: int) -> None:
        """`max_request` in bytes: a client that announces more is cut off."""
        self._loop = loop
        self._receiver = receiver
        self._staging = staging
        self._max_request = max_request
        self._transport: asyncio.Transport | None = None
        self._frame: bytearray | None = None  # of a frame that has come in part
        self._filled = 0
        self._need = 0  # its whole size, once four bytes of it are there
        self._backlog = b""
        self._busy = False
        self._choked = False
        self._paused = False  # whether the transport has been told not to read
        self._goes_on = False  # whether the loop will call `_go_on`
        self.peer = "?"
        self.host = ""  # the address of ours by which it has come
        self.client_id = ""  # as its last request had it
        self.login: Login | None = None  # what it has to go through before anything else
        self.user = "ANONYMOUS"  # who it is, once it has shown that
        self.software = ("unknown", "unknown")  # the client's name and version, where it has told

    # -- for the broker

    def answer(self, parts: list[bytes]) -> None:
        """Send a response without its length, and go on to the next request. No parts: send nothing."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if parts:
            parts.insert(0, _LENGTH.pack(sum(map(len, parts))))
            transport.write(b"".join(parts))
        self._busy = False
        if self._backlog or self._paused:
            self._go_on_soon()

    def close(self, why: str = "") -> None:
        """Close after what has been written is sent; log `why` unless it is empty."""
        if why:
            logger("broker").warning("connection of %s closed: %s", self.peer, why)
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, and discard what has not been sent."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def closed(self) -> bool:
        """Return whether no response can be sent any more."""
        return self._transport is None or self._transport.is_closing()

    def __repr__(self) -> str:
        return f"<Connection of {self.peer}>"

    # -- for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: a client has connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none, and does what one does
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.peer = f"{peer[0]}:{peer[1]}"
            self.host = transport.get_extra_info("sockname")[0]
        self._receiver.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything: the connection has ended."""
        self._transport = None
        self._frame = None
        self._backlog = b""
        self._receiver.disconnected(self)

    def pause_writing(self) -> None:
        """Stop handling requests: the client is a slow reader."""
        self._choked = True

    def resume_writing(self) -> None:
        """Go on: the client has read enough."""
        self._choked = False
        if not self._busy and (self._backlog or self._paused):
            self._go_on_soon()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the transport puts the next bytes."""
        frame = self._frame
        if frame is None:
            return self._staging.writable
        if self._filled == len(frame):
            frame.extend(bytes(min(self._need - self._filled, max(self._filled, _STAGING))))
        return memoryview(frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Handle `nbytes` bytes that have arrived."""
        frame = self._frame
        if frame is None:
            received = self._staging.first(nbytes)
            if self._busy or self._choked or self._backlog:  # what came before comes first
                self._backlog += received
                self._pause()
            else:
                self._parse(received)
            return
        self._filled += nbytes
        if self._filled < len(frame):
            return
        if self._need == 4:
            self._need = self._size_of(frame)
        if self._need and self._filled == self._need:
            self._frame = None
            self._busy = True
            self._receiver.receive(self, memoryview(frame).toreadonly()[4:])

    def eof_received(self) -> bool:
        """Return False, which closes the transport: no client of Kafka half-closes."""
        return False

    # -- inside

    def _parse(self, received: memoryview) -> None:
        """Hand out frames until one is not answered at once, or it is time for other connections."""
        position, end = 0, len(received)
        left = _REQUESTS
        while end - position >= 4:
            size = self._size_of(received[position : position + 4])
            if not size:
                return
            if end - position < size:
                break
            position += size
            self._busy = True
            self._receiver.receive(self, received[position - size + 4 : position])
            left -= 1
            if self._busy or self._choked or not left:
                self._backlog = bytes(received[position:])
                if self._backlog and not (self._busy or self._choked):
                    self._go_on_soon()
                return
        if position < end:
            self._begin_frame(received[position:])

    def _begin_frame(self, first: memoryview) -> None:
        """Keep the first part of a frame."""
        self._filled = len(first)
        if self._filled < 4:
            self._need = 4
            self._frame = bytearray(4)
        else:
            self._need = 4 + _LENGTH.unpack_from(first)[0]
            self._frame = bytearray(min(self._need, max(_STAGING, 2 * self._filled)))
        self._frame[: self._filled] = first

    def _size_of(self, head: memoryview | bytearray) -> int:
        """Return a frame's size with its length field; close the connection and return 0 for an invalid one."""
        size: int = _LENGTH.unpack_from(head)[0]
        most, limit = self._max_request, "socket.request.max.bytes"
        if self.login is not None and 0 <= self.login.largest < most:
            most, limit = self.login.largest, "sasl.server.max.receive.size"
        if 0 < size <= most:
            return 4 + size
        self._frame = None
        self._busy = True  # nothing is read from it any more
        spoken = [what for begins, what in _OTHERS.items() if bytes(head).startswith(begins)]
        seems = f": it seems to speak {spoken[0]}" if spoken else ""
        self.close(f"it announced a request of {size} bytes; {limit} is {most}{seems}")
        return 0

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _go_on_soon(self) -> None:
        """Schedule `_go_on` for the loop's next turn, once."""
        if not self._goes_on:
            self._goes_on = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Handle the next request, if one has arrived, and read again."""
        self._goes_on = False
        if self._busy or self._choked or self.closed:
            return
        if self._backlog:
            backlog, self._backlog = self._backlog, b""
            self._parse(memoryview(backlog))
        if self._paused and not (self._busy or self._choked or self._backlog or self._transport is None):
            self._paused = False
            self._transport.resume_reading()
