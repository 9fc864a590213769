"""One connection of a client: split the received bytes into requests, and handle one request at a time.

Ground rules
------------
* All connections of a cluster receive into one buffer (`Staging`), which is filled and emptied within one callback of
  the loop: an idle connection has no buffer. An incomplete frame moves to a buffer of its own, which grows with the
  bytes received: a frame that announces a gigabyte does not allocate a gigabyte (law K9).
* The frame given to `receive` is a view of the buffer, valid until `receive` returns: copy it to keep it.
* While a request is being handled (`_busy`), or the client is a slow reader (`_choked`), nothing is parsed. Bytes that
  were read meanwhile, at most one staging buffer, wait in `_backlog`; the rest waits in the socket. So responses leave
  in the order of requests (law K10), and a slow reader holds up only one response.
* The event loop starts the next request. `answer` does not, as it is often called while another connection is handled.
* Fairness: each turn of the loop handles only a few requests of one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol, cast

from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.security.login import Login, SaslSession

_LENGTH = Struct(">i")
_STAGING = 256 * 1024
# The first bytes of other protocols. Read as a length, they are hundreds of megabytes.
_OTHERS = {b"\x16\x03": "TLS, which this listener does not speak", b"GET ": "HTTP", b"POST": "HTTP", b"HEAD": "HTTP"}
_REQUESTS = 16  # of one connection in a turn of the loop: about a millisecond


class Receiver(Protocol):
    """The owner of connections, which handles their requests: a broker."""

    def connected(self, connection: Connection) -> None:
        """Register a new connection."""

    def receive(self, connection: Connection, frame: memoryview) -> None:
        """Handle a request: call `connection.answer` or `connection.close`, now or later."""

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection that has ended."""


class Staging:
    """The buffer into which all connections of a loop receive."""

    __slots__ = ("_readable", "writable")

    def __init__(self) -> None:
        self.writable = memoryview(bytearray(_STAGING))
        self._readable = self.writable.toreadonly()

    def first(self, count: int) -> memoryview:
        """Return a read-only view of the first `count` bytes."""
        return self._readable[:count]


class Connection(asyncio.BufferedProtocol):
    """A client's connection to a broker."""

    __slots__ = (
        "_backlog", "_busy", "_choked", "_filled", "_frame", "_loop", "_max_request", "_need", "_paused", "_receiver",
        "_scheduled", "_staging", "_transport", "certificate", "client_id", "host", "login", "peer", "session",
        "software", "user",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, receiver: Receiver, staging: Staging, max_request: int) -> None:
        """Create a connection, not yet connected. A request of more than `max_request` bytes will close it."""
        self._loop = loop
        self._receiver = receiver
        self._staging = staging
        self._max_request = max_request
        self._transport: asyncio.Transport | None = None
        self._frame: bytearray | None = None  # an incomplete frame
        self._filled = 0  # its bytes received so far
        self._need = 0  # its whole size, known after four bytes
        self._backlog = b""
        self._busy = False
        self._choked = False
        self._paused = False  # whether reading from the transport is paused
        self._scheduled = False  # whether the loop will call `_go_on`
        self.peer = "?"
        self.host = ""  # our address that the client connected to
        self.client_id = ""  # of the last request
        self.certificate: Mapping[str, Any] | None = None  # the client's TLS certificate, if any
        self.login: Login | None = None  # the authentication in progress
        self.session: SaslSession | None = None  # once authenticated by SASL
        self.user = "ANONYMOUS"  # until authenticated
        self.software = ("unknown", "unknown")  # the client's name and version

    # -- for the broker

    def answer(self, parts: list[bytes], *, mute: bool = False) -> bool:
        """Send a response, prefixed with its length, and go on to the next request. If `parts` is empty, send nothing.

        Return False if the connection is closed.

        With `mute`, go on to the next request only after `unmute`.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        if parts:
            parts.insert(0, _LENGTH.pack(sum(map(len, parts))))
            transport.write(b"".join(parts))
        if not mute:
            self.unmute()
        return True

    def authenticated(self, session: SaslSession) -> None:
        """Handle all further requests in the name of this session's user."""
        self.login, self.session, self.user = None, session, session.user

    def unmute(self) -> None:
        """Go on to the next request."""
        self._busy = False
        if self._backlog or self._paused:
            self._go_on_soon()

    def close(self, why: str = "") -> None:
        """Close the connection once all written bytes are sent. Log the reason `why` unless it is empty."""
        if why:
            logger("broker").warning("connection of %s closed: %s", self.peer, why)
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once and discard unsent bytes."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def closed(self) -> bool:
        """Return whether the connection is closed or closing."""
        return self._transport is None or self._transport.is_closing()

    def __repr__(self) -> str:
        return f"<Connection of {self.peer}>"

    # -- for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the new client with the receiver."""
        self.certificate = transport.get_extra_info("peercert")
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has its methods, but is not a subclass
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.peer = f"{peer[0]}:{peer[1]}"
            self.host = transport.get_extra_info("sockname")[0]
        self._receiver.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the buffers and notify the receiver."""
        self._transport = None
        self._frame = None
        self._backlog = b""
        self._receiver.disconnected(self)

    def pause_writing(self) -> None:
        """Stop handling requests: the client is a slow reader."""
        self._choked = True

    def resume_writing(self) -> None:
        """Handle requests again: the client has caught up reading."""
        self._choked = False
        if not self._busy and (self._backlog or self._paused):
            self._go_on_soon()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the transport's next bytes."""
        frame = self._frame
        if frame is None:
            return self._staging.writable
        if self._filled == len(frame):
            frame.extend(bytes(min(self._need - self._filled, max(self._filled, _STAGING))))
        return memoryview(frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Handle `nbytes` received bytes."""
        frame = self._frame
        if frame is None:
            received = self._staging.first(nbytes)
            if self._busy or self._choked or self._backlog:  # earlier bytes first
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
        """Return False, which closes the transport: Kafka's clients do not half-close."""
        return False

    # -- inside

    def _parse(self, received: memoryview) -> None:
        """Handle frames until one waits for its response, or other connections need their turn."""
        position, end = 0, len(received)
        remaining = _REQUESTS
        while end - position >= 4:
            size = self._size_of(received[position : position + 4])
            if not size:
                return
            if end - position < size:
                break
            position += size
            self._busy = True
            self._receiver.receive(self, received[position - size + 4 : position])
            remaining -= 1
            if self._busy or self._choked or not remaining:
                self._backlog = bytes(received[position:])
                if self._backlog and not (self._busy or self._choked):
                    self._go_on_soon()
                return
        if position < end:
            self._begin_frame(received[position:])

    def _begin_frame(self, first: memoryview) -> None:
        """Store the first bytes of an incomplete frame."""
        self._filled = len(first)
        if self._filled < 4:
            self._need = 4
            self._frame = bytearray(4)
        else:
            self._need = 4 + _LENGTH.unpack_from(first)[0]
            self._frame = bytearray(min(self._need, max(_STAGING, 2 * self._filled)))
        self._frame[: self._filled] = first

    def _size_of(self, head: memoryview | bytearray) -> int:
        """Return a frame's size, length field included. If the size is invalid, close the connection and return 0."""
        size: int = _LENGTH.unpack_from(head)[0]
        limit, setting = self._max_request, "socket.request.max.bytes"
        if self.login is not None and 0 <= self.login.largest < limit:
            limit, setting = self.login.largest, "sasl.server.max.receive.size"
        if 0 < size <= limit:
            return 4 + size
        self._frame = None
        self._busy = True  # read no more
        guesses = [protocol for prefix, protocol in _OTHERS.items() if bytes(head).startswith(prefix)]
        seems = f": it seems to speak {guesses[0]}" if guesses else ""
        self.close(f"the client announced a request of {size} bytes; {setting} is {limit}{seems}")
        return 0

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _go_on_soon(self) -> None:
        """Schedule `_go_on` for the loop's next turn, unless it is already scheduled."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Handle the backlog and resume reading."""
        self._scheduled = False
        if self._busy or self._choked or self.closed:
            return
        if self._backlog:
            backlog, self._backlog = self._backlog, b""
            self._parse(memoryview(backlog))
        if self._paused and not (self._busy or self._choked or self._backlog or self._transport is None):
            self._paused = False
            self._transport.resume_reading()
