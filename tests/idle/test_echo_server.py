"""examples/idle_echo_server.py, run as a person runs it, with thousands of real connections."""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "idle_echo_server.py"
TIMEOUT = 4.0  # seconds; the pings come four times as often, and the machine may be busy
CONNECTIONS = 2000


@contextmanager
def server(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The example in a process of its own, and its port."""
    command = [sys.executable, str(EXAMPLE), "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            yield process, int(words[words.index("port") + 1].rstrip(";"))
        finally:
            process.kill()


@pytest.fixture
def many_files() -> Iterator[int]:
    """As many connections as this process may have, up to CONNECTIONS."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = before[1] if before[1] != resource.RLIM_INFINITY else CONNECTIONS + 500
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    yield min(CONNECTIONS, (most - 200) // 2 * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Client(asyncio.Protocol):
    """Notes when it sent last, and when the server dropped it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.alive_at = self._pinged_at = 0.0  # the server cannot have seen it before this
        self.echoed = 0
        self.dropped_at: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.echoed += len(data)
        self.alive_at = self._pinged_at  # what was not echoed may have come too late

    def connection_lost(self, error: Exception | None) -> None:
        self.dropped_at = time.monotonic()

    def ping(self) -> None:
        self._pinged_at = time.monotonic()
        self.transport.write(b"ping")


async def connect(port: int, count: int) -> list[Client]:
    clients = []
    for _ in range(count):
        began = time.monotonic()
        _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
        client.alive_at = began
        clients.append(client)
    return clients


async def talk(clients: list[Client]) -> None:
    while True:
        for client in clients:
            client.ping()
        await asyncio.sleep(TIMEOUT / 4)


async def exercise(port: int, count: int) -> None:
    """Half of the clients talk on; of the rest one half never says a word, and the other one and no more."""
    talkers = await connect(port, count // 2)
    talking = asyncio.create_task(talk(talkers))
    silent = await connect(port, count // 2)
    try:
        for client in silent[::2]:
            client.ping()
        give_up = time.monotonic() + 60
        while any(client.dropped_at is None for client in silent):
            assert time.monotonic() < give_up, "some who are silent are not dropped"
            await asyncio.sleep(0.05)
        await asyncio.sleep(TIMEOUT / 2)

        assert sum(client.dropped_at is not None for client in talkers) == 0
        assert all(client.echoed >= 8 for client in talkers)
        early = [client for client in silent if (client.dropped_at or 0) - client.alive_at < TIMEOUT]
        assert len(early) == 0, "never early (T1)"
        assert {client.echoed for client in silent[::2]} == {4}
        assert {client.echoed for client in silent[1::2]} == {0}
        for client in talkers[::2]:
            client.transport.close()
        await asyncio.sleep(0.5)
    finally:
        talking.cancel()
        for client in talkers + silent:
            client.transport.abort()
        await asyncio.sleep(0.1)


@pytest.mark.slow
def test_exactly_the_silent_are_dropped_of_thousands_of_connections(many_files: int) -> None:
    with server("--timeout", str(TIMEOUT)) as (process, port):
        asyncio.run(exercise(port, many_files))
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        last = process.stdout.read()
        assert process.wait(30) == 0
    counts = [int(word) for word in last.split() if word.isdigit()]
    assert counts == [many_files, many_files // 2, many_files // 2, 0]


def test_it_explains_itself_and_its_mistakes() -> None:
    command = [sys.executable, str(EXAMPLE)]
    help_text = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert "--timeout SECONDS" in help_text
    for arguments, words in [
        (["--timeout", "0"], "invalid seconds value: '0'"),
        (["--timeout", "nan"], "invalid seconds value: 'nan'"),
    ]:
        refused = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert words in refused.stderr
    with server() as (_, port):
        taken = subprocess.run([*command, "--port", str(port)], capture_output=True, text=True, check=False)
        assert taken.returncode == 1
        assert taken.stderr.startswith(f"cannot listen on 127.0.0.1 port {port}: ")
        assert taken.stderr.count("\n") == 1
