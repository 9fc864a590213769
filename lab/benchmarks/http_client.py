"""Load an HTTP server from a process of its own: `python -m lab.benchmarks.http_client PORT N C`.

So the server has a core for itself. The client sends a fixed request N times on C connections that stay open, and
prints requests per second. (Plain threads would not keep up; a library's own cost would be measured with the server.)
"""

from __future__ import annotations

import asyncio
import sys
import time

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
END = b"here"  # the whole body


class Connection(asyncio.Protocol):
    """Connection that sends a request, waits for its response, and sends the next; `count` requests in all."""

    def __init__(self, count: int, done: asyncio.Future[None]) -> None:
        self._left = count
        self._done = done
        self._transport: asyncio.Transport | None = None
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """Send the next request once the response is complete; close after the last."""
        self._got += data
        if not self._got.endswith(END):
            return
        assert self._transport is not None
        self._got = b""
        self._left -= 1
        if self._left:
            self._transport.write(REQUEST)
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete `done`; with an error if requests are left."""
        if self._left and not self._done.done():
            self._done.set_exception(exc or ConnectionError(f"closed with {self._left} requests to go"))
        elif not self._done.done():
            self._done.set_result(None)


async def main(port: int, count: int, connections: int) -> None:
    """Send `count` requests on `connections` connections; print requests per second."""
    loop = asyncio.get_running_loop()
    each = max(1, count // connections)
    done = [loop.create_future() for _ in range(connections)]
    began = time.perf_counter()
    for one in done:
        await loop.create_connection(lambda one=one: Connection(each, one), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*done)
    print(each * connections / (time.perf_counter() - began))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
