"""A connection in memory: two endpoints, each with its transport. Bytes arrive in order, after a random latency.

A connection ends as in TCP. `close` sends what was written and then a FIN; bytes that arrive at a closed end cause a
reset. `abort` sends a reset, and so does `close`, or the end of the process, if bytes are unread. A slow reader pauses
the writer.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from abeyant.simulation.ports import OWNER, Address, Life, Network

_HIGH: Final = 64 * 1024  # bytes: asyncio's default mark for `pause_writing`
_SYSTEM: Final = 256 * 1024  # bytes in the socket buffers of both ends
_EOF: Final = None


class Endpoint:
    """One end of a connection. It buffers bytes that arrive until its transport reads them."""

    __slots__ = (
        "_arrives", "_unread", "arriving", "closed", "local", "name", "network", "owner", "peer", "remote",
        "reset", "transport",
    )  # fmt: skip

    def __init__(self, network: Network, name: str, local: Address, remote: Address, owner: Life | None) -> None:
        self.network = network
        self.name = name
        self.local = local
        self.remote = remote
        self.owner = owner
        self.peer: Endpoint = self
        self.transport: Transport | None = None
        self.closed = False  # no more bytes are sent or received
        self.reset = False  # the other end reset the connection
        self.arriving = 0  # bytes sent to it that its protocol has not received
        self._arrives = 0.0  # when the last bytes sent to it arrive, in seconds on the loop's clock
        self._unread: deque[bytes | None] = deque()

    def send(self, data: bytes | None) -> None:
        """Send bytes to the other end; None sends EOF."""
        network, peer = self.network, self.peer
        at = network.arrival(self)
        peer._arrives = at = max(at, peer._arrives)
        if data is not None:
            peer.arriving += len(data)
        network.loop.call_at(at, peer._arrive, data, context=network.context)

    def abandon(self) -> None:
        """Close at once: reset the other end, and notify this end's protocol."""
        if not self.closed:
            self.closed = True
            self._unread.clear()
            self._send_reset()
            if self.transport is not None:
                self.transport._lost_soon(None)

    def end_with_owner(self) -> None:
        """Close as the operating system does for a killed process: EOF, or a reset if bytes are unread."""
        if not self.closed:
            self.closed = True
            if self._unread:
                self._send_reset()
            else:
                self.send(_EOF)

    def take(self) -> bytes | None:
        """Return the next bytes that arrived, or None for EOF. Raises IndexError if there are none."""
        return self._unread.popleft()

    @property
    def waits(self) -> bool:
        """Return whether bytes or EOF have arrived that `take` has not returned."""
        return bool(self._unread)

    def _send_reset(self) -> None:
        network, peer = self.network, self.peer
        network.loop.call_at(max(network.arrival(self), peer._arrives), peer._arrive_reset, context=network.context)

    def _arrive(self, data: bytes | None) -> None:
        network = self.network
        network.loop.trace.add(network.loop.now, self.name, data or b"")
        if self.closed:
            if data is not _EOF and not self.peer.closed:
                self._send_reset()
            return
        self._unread.append(data)
        if self.transport is not None:
            self.transport._read()

    def _arrive_reset(self) -> None:
        network = self.network
        network.loop.trace.add(network.loop.now, f"{self.name} reset")
        if not self.closed:
            self.closed = self.reset = True
            self._unread.clear()
            if self.transport is not None:
                self.transport._lost_soon(ConnectionResetError(104, "Connection reset by peer"))


class Transport(asyncio.Transport):
    """The asyncio transport of one endpoint."""

    def __init__(
        self, endpoint: Endpoint, protocol: asyncio.BaseProtocol, made: asyncio.Future[None] | None = None
    ) -> None:
        """Call `protocol.connection_made` in the loop's next turn, then complete `made`."""
        super().__init__({"peername": endpoint.remote, "sockname": endpoint.local})
        self._endpoint = endpoint
        self._loop = endpoint.network.loop
        self._context = contextvars.copy_context()
        self._protocol: Any = protocol
        self._closing = False
        self._lost = False
        self._reading = False
        self._paused = False
        self._choked = False
        self._eof_written = False
        self._high, self._low = _HIGH, _HIGH // 4
        endpoint.transport = self
        endpoint.owner = OWNER.get()
        endpoint.network.opened(endpoint)
        self._soon(self._protocol.connection_made, self)
        self._soon(self._begin, made)

    def _soon(self, callback: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon(callback, *args, context=self._context)

    def _begin(self, waiter: asyncio.Future[None] | None) -> None:
        self._reading = True
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self._endpoint.reset:
            self._lost_soon(ConnectionResetError(104, "Connection reset by peer"))
        else:
            self._flush()

    # -- reading

    def _read(self) -> None:
        """Deliver bytes that arrived, in the protocol's context."""
        if self._reading and not self._paused:
            self._context.run(self._flush)

    def _flush(self) -> None:
        endpoint = self._endpoint
        while endpoint.waits and self._reading and not (self._paused or self._closing):
            owner = endpoint.owner
            if owner is not None and owner.dead:
                return
            data = endpoint.take()
            try:
                if data is _EOF:
                    self._end_of_input()
                    return
                self._hand(data)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  as asyncio's transports do
                self._fatal(error)
                return

    def _hand(self, data: bytes) -> None:
        endpoint, protocol = self._endpoint, self._protocol
        endpoint.arriving -= len(data)
        peer = endpoint.peer.transport
        if peer is not None and peer._choked and endpoint.arriving <= peer._low + _SYSTEM:
            peer._soon(peer._unchoke)
        if not hasattr(protocol, "get_buffer"):
            protocol.data_received(data)
            return
        remaining = memoryview(data)
        while remaining:
            buffer = protocol.get_buffer(len(remaining))
            size = min(len(buffer), len(remaining))
            buffer[:size] = remaining[:size]
            remaining = remaining[size:]
            protocol.buffer_updated(size)

    def _end_of_input(self) -> None:
        self._reading = False
        keep_open = self._protocol.eof_received()
        if not keep_open:
            self.close()

    def _fatal(self, error: BaseException) -> None:
        if not isinstance(error, OSError):
            self._loop.call_exception_handler({
                "message": "Fatal error: protocol.data_received() call failed.", "exception": error, "transport": self,
                "protocol": self._protocol,
            })  # fmt: skip
        self.abort()

    def is_reading(self) -> bool:
        """Return whether the transport delivers bytes that arrive."""
        return self._reading and not self._paused and not self._closing

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`."""
        self._paused = True

    def resume_reading(self) -> None:
        """Deliver bytes again, from the loop's next turn on."""
        if self._paused and not self._closing:
            self._paused = False
            self._soon(self._flush)

    # -- writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes. Discard them if the connection has ended, as asyncio does."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        endpoint = self._endpoint
        if not data or endpoint.closed or self._closing:
            return
        endpoint.send(bytes(data))
        if not self._choked and endpoint.peer.arriving > self._high + _SYSTEM:
            self._choked = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send the bytes of all items, in order."""
        self.write(b"".join(list_of_data))

    def _unchoke(self) -> None:
        if self._choked and not self._lost:
            self._choked = False
            self._protocol.resume_writing()

    def can_write_eof(self) -> bool:
        """Return True."""
        return True

    def write_eof(self) -> None:
        """Send EOF: this side writes no more."""
        if not self._eof_written and not self._endpoint.closed:
            self._eof_written = True
            self._endpoint.send(_EOF)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the write buffer holds: unread bytes beyond the 256 KiB that socket buffers hold."""
        return max(self._endpoint.peer.arriving - _SYSTEM, 0)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the numbers of buffered bytes at which writing is resumed and paused."""
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the numbers of bytes at which writing is paused and resumed, with asyncio's defaults."""
        self._high = (4 * low if low is not None else _HIGH) if high is None else high
        self._low = self._high // 4 if low is None else low

    # -- the end

    def is_closing(self) -> bool:
        """Return whether the transport is closed or closing."""
        return self._closing or self._lost

    def close(self) -> None:
        """Close after sending what was written; reset the connection if bytes that arrived are unread."""
        if not self._closing:
            self._closing = True
            endpoint = self._endpoint
            if not endpoint.closed:
                if endpoint.waits:
                    endpoint.abandon()
                    return
                if not self._eof_written:
                    endpoint.send(_EOF)
                endpoint.closed = True
            self._lost_soon(None)

    def abort(self) -> None:
        """Close at once; the other end sees a reset."""
        self._closing = True
        self._endpoint.abandon()
        self._lost_soon(None)

    def _lost_soon(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._soon(self._report_loss, error)

    def _report_loss(self, error: Exception | None) -> None:
        self._endpoint.network.closed(self._endpoint)
        protocol, self._protocol = self._protocol, asyncio.Protocol()
        protocol.connection_lost(error)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol  # type: ignore[no-any-return]

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Deliver bytes to another protocol from now on."""
        self._protocol = protocol

    def __repr__(self) -> str:
        return f"<Transport {self._endpoint.name}{' closing' if self._closing else ''}>"
