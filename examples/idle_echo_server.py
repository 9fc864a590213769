"""A TCP echo server in asyncio that drops clients who have been silent for too long.

    python examples/idle_echo_server.py --timeout 30

The whole of the idle time-out is five lines: a detector on the loop's own timer, `seen` in `data_received`, `forget` in
`connection_lost`. A packet costs it a store, a hundred thousand connections one timer. Try it with `nc 127.0.0.1 7007`;
Ctrl-C ends it, and counts the connections.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
from contextlib import suppress

from abeyant import IdleDetector
from abeyant.aio import Timer


class Echo(asyncio.Protocol):
    """One connection: everything comes back, and whoever sends is alive."""

    def __init__(self, idle: IdleDetector) -> None:
        self.idle = idle
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client that never sends a byte is dropped, too: its time begins here."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.idle.seen(self)

    def data_received(self, data: bytes) -> None:
        """On every packet."""
        self.idle.seen(self)
        self.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        """The client left, or was dropped."""
        self.idle.forget(self)

    def drop(self) -> None:
        """At once: a client that is silent may not be reading either, and a polite end would wait for it."""
        self.transport.abort()


async def serve(host: str, port: int, timeout: float, backlog: int) -> None:
    loop = asyncio.get_running_loop()
    idle = IdleDetector(timeout, on_idle=Echo.drop, timer=Timer())
    server = await loop.create_server(lambda: Echo(idle), host, port, backlog=backlog)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    address = server.sockets[0].getsockname()
    print(f"echo on {address[0]} port {address[1]}; who is silent for {timeout:g} s is dropped", flush=True)
    await stop.wait()
    server.close()
    counts = idle.stats()
    for connection in idle.close():  # it hands back who is still there
        connection.drop()
    print(f"{counts.started} connections: {counts.expired} dropped, {counts.forgotten} left, {counts.watched} open")


def raise_file_limit() -> None:
    """A connection is an open file: allow as many as the system lets us."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description="Echo what clients send; drop those who are silent for too long.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=7007, help="0 for any free one (default: %(default)s)")
    parser.add_argument(
        "--timeout", type=seconds, default=30.0, metavar="SECONDS", help="of silence (default: %(default)g)"
    )
    parser.add_argument("--backlog", type=int, default=1024, help="connections not yet accepted (default: %(default)s)")
    arguments = parser.parse_args()
    raise_file_limit()
    try:
        asyncio.run(serve(arguments.host, arguments.port, arguments.timeout, arguments.backlog))
    except OSError as error:
        parser.exit(1, f"cannot listen on {arguments.host} port {arguments.port}: {error.strerror or error}\n")


if __name__ == "__main__":
    main()
