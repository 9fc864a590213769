"""What a client notices of hostile neighbours (K9): its latency alone, and while others send nonsense.

    PYTHONPATH=tests python -m broker.neighbour --seconds 10

The server, the good client and the hostile ones are a process each; beside them are thousands of idle connections and
one client that never reads. All share the machine's processors. What that alone costs is seen by a second server on
the same loop, under the same attack, which sends back what comes and does nothing else.

Before, every API is asked for in every version: the first request of a version has kio define its classes, once in a
process, and that takes all clients some 3 ms each time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from abeyant import aio
from abeyant.broker import Cluster
from broker.asking import SECOND
from broker.fuzz import GOOD, attack, corpus, hostile, prepare, unserved
from broker.log.batches import batch
from broker.wire import WireClient, encoded

_IDLE = 5_000  # connections
_TICKS = os.sysconf("SC_CLK_TCK")


class There:
    """As much of a cluster as `attack` looks at."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap


class Echo(asyncio.Protocol):
    """A server that sends back what comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self._transport.write(data)

    def pause_writing(self) -> None:
        """A client that does not read is not read from either."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It has read."""
        self._transport.resume_reading()


def serve(kind: str) -> None:
    """Say where a server listens, and serve until stdin ends."""
    logging.getLogger("abeyant.broker").setLevel(logging.ERROR)
    if kind == "broker":
        with Cluster() as kafka:
            prepare(kafka)
            print(kafka.bootstrap, flush=True)
            sys.stdin.read()
        return

    async def echo() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, "127.0.0.1", 0, backlog=1024)
        print(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await loop.run_in_executor(None, sys.stdin.read)

    aio.run(echo())


def be_hostile(bootstrap: str, seconds: float) -> None:
    """Attack until time is over, and print how often."""
    with Cluster() as own:
        prepare(own)
        frames = corpus(own)
    there: Any = There(bootstrap)
    for frame in frames:
        attack(there, len(frame).to_bytes(4, "big") + frame, patience=1.0)
    print("begun", flush=True)
    seed, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        attack(there, hostile(random.Random(seed), frames), patience=1.0)
        seed += 1
    print(seed)


def record(client: WireClient) -> None:
    """Have a record taken and given back."""
    if (why := unserved(client, b"value")) is not None:
        raise SystemExit(f"the good client was not served: {why}")


def echoed(client: WireClient) -> None:
    """Send what `record` sends, and have it sent back."""
    topic = {"name": GOOD, "partition_data": [{"index": 0, "records": batch([b"value"]).data}]}
    at = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    topics = [{"topic": GOOD, "partitions": [at]}]
    for key, version, values in (
        (0, 9, {"acks": -1, "timeout": 30 * SECOND, "topic_data": [topic]}),
        (1, 11, {"max_wait": SECOND, "min_bytes": 1, "max_bytes": 1_000_000, "session_epoch": -1, "topics": topics}),
    ):
        data = encoded(key, version, 1, **values)
        client.socket.sendall(len(data).to_bytes(4, "big") + data)
        left = 4 + len(data)
        while left:
            left -= len(client.socket.recv(left))


def latencies(there_and_back: Callable[[WireClient], None], good: WireClient, seconds: float) -> list[float]:
    """How long it takes, in ms, again and again."""
    found = []
    end = time.monotonic() + seconds
    while (began := time.perf_counter()) and time.monotonic() < end:
        there_and_back(good)
        found.append((time.perf_counter() - began) * 1000)
    return found


@contextmanager
def serving(kind: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: where it listens, and the process's id."""
    command = [sys.executable, "-m", "broker.neighbour", "--serve", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.stdin.close()


def used(pid: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICKS


def measure(kind: str, seconds: float) -> None:
    """Measure one kind of server, and print."""
    there_and_back = record if kind == "broker" else echoed
    with serving(kind) as (bootstrap, pid), ExitStack() as held:

        def tell(what: str, seconds: float) -> None:
            before, began = used(pid), time.monotonic()
            found = latencies(there_and_back, good, seconds)
            core = (used(pid) - before) / (time.monotonic() - began) * 100
            cuts = statistics.quantiles(found, n=100)
            print(
                f"{kind:<7} {what:<28} {len(found):>8,} times   p50 {cuts[49]:6.2f} ms   p99 {cuts[98]:6.2f} ms"
                f"   server {core:4.0f} % of a core",
                flush=True,
            )

        host, _, port = bootstrap.rpartition(":")
        where = host, int(port)
        good = held.enter_context(WireClient(bootstrap))
        latencies(there_and_back, good, 1.0)
        tell("alone", seconds)
        for _ in range(_IDLE):
            held.enter_context(socket.create_connection(where, timeout=30))
        tell(f"beside {_IDLE:,} idle clients", seconds)
        slow = held.enter_context(socket.create_connection(where, timeout=30))
        slow.setblocking(False)
        ask = encoded(3, 1, 1, topics=None)
        flood = (len(ask).to_bytes(4, "big") + ask) * 10_000
        try:
            while slow.send(flood):
                pass
        except BlockingIOError:
            pass  # it does not read, so it is not read from any more
        command = [sys.executable, "-m", "broker.neighbour", "--attack", bootstrap]
        with subprocess.Popen([*command, "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True) as bad:
            assert bad.stdout is not None
            bad.stdout.readline()
            tell("and hostile ones", seconds - 0.5)
            said = bad.communicate()[0]
        print(f"{kind:<7} {int(said) / seconds:,.0f} hostile connections a second", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a client notices of hostile neighbours.")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each line (default: %(default)s)")
    parser.add_argument("--serve", choices=("broker", "echo"), help=argparse.SUPPRESS)
    parser.add_argument("--attack", metavar="BOOTSTRAP", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve)
    elif args.attack:
        be_hostile(args.attack, args.seconds)
    else:
        for kind in ("broker", "echo"):
            measure(kind, args.seconds)


if __name__ == "__main__":
    main()
