"""Measure a lower bound of a long poll's latency, with a server that only forwards between two sockets.

The server runs on our brokers' event loop, in its own process: `python -m lab.broker.relay` prints its port and
serves until stdin ends.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from abeyant import aio
from lab.broker.client import VALUE, Latency, latency_of
from lab.broker.peers import PeerError, processor_seconds

_TIMEOUT = 30.0  # seconds


def relay_latency(records: int, pause: float) -> Latency:
    """Measure the time from sending 100 bytes to receiving them on the other connection, every `pause` seconds."""
    with _relay() as (port, pid), ExitStack() as connections:
        sender, receiver = (
            connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT)) for _ in range(2)
        )
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        arrived = threading.Semaphore(0)
        times: list[float] = []

        def listen() -> None:
            while receiver.recv(len(VALUE), socket.MSG_WAITALL):
                times.append(time.perf_counter())
                arrived.release()

        listener = threading.Thread(target=listen)
        listener.start()
        seconds = []
        try:
            before = processor_seconds(pid)
            for _ in range(records):
                time.sleep(pause)
                begun = time.perf_counter()
                sender.sendall(VALUE)
                if not arrived.acquire(timeout=_TIMEOUT):
                    raise PeerError(f"the relay forwarded nothing within {_TIMEOUT:.0f} s")
                seconds.append(times[-1] - begun)
            used = processor_seconds(pid) - before
        finally:
            receiver.shutdown(socket.SHUT_RDWR)
            listener.join()
    return latency_of(seconds, used)


@contextmanager
def _relay() -> Iterator[tuple[int, int]]:
    """Start the relay in a process of its own; yield its port and process id."""
    command = [sys.executable, "-m", "lab.broker.relay"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.stdin.close()


class _Relay(asyncio.Protocol):
    """Protocol of the relay, which forwards each connection's data to all other connections."""

    def __init__(self, transports: list[asyncio.Transport]) -> None:
        self._transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._own = transport
        self._transports.append(transport)

    def data_received(self, data: bytes) -> None:
        for transport in self._transports:
            if transport is not self._own:
                transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transports.remove(self._own)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    transports: list[asyncio.Transport] = []
    server = await loop.create_server(lambda: _Relay(transports), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    aio.run(_serve())
