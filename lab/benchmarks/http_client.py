"""A client of a process of its own, so that the server has its core: `python -m lab.benchmarks.http_client PORT N C`.

Plain threads would not keep up and a library would be measured with the server: it writes a fixed request on C
connections that stay open, and counts answers. Prints requests a second.
"""

from __future__ import annotations

import asyncio
import sys
import time

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
END = b"here"  # the whole body


class Connection(asyncio.Protocol):
    """Sends a request, waits for its answer, sends the next."""

    def __init__(self, count: int, done: asyncio.Future[None]) -> None:
        self._left = count
        self._done = done
        self._transport: asyncio.Transport | None = None
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """Go on."""
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
        """End."""
        if self._left and not self._done.done():
            self._done.set_exception(exc or ConnectionError(f"closed with {self._left} requests to go"))
        elif not self._done.done():
            self._done.set_result(None)


async def main(port: int, count: int, connections: int) -> None:
    """Print requests a second."""
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
