"""What a client notices of hostile neighbours (K9): its latency alone, and while others send nonsense.

    PYTHONPATH=tests python -m broker.neighbour --seconds 10

The broker and the good client are in this process, the hostile ones in another. Beside them are thousands of idle
connections and one client that never reads. So the figures hold what two processors do to one another, too.
"""

from __future__ import annotations

import argparse
import logging
import random
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

from abeyance.broker import Cluster
from broker.fuzz import attack, corpus, hostile, prepare, serves
from broker.wire import WireClient, encoded

_IDLE = 5_000  # connections; both ends are in this process


def latencies(good: WireClient, seconds: float) -> list[float]:
    """How long a record takes there and back, in ms, again and again."""
    found = []
    end = time.monotonic() + seconds
    while (began := time.perf_counter()) and time.monotonic() < end:
        if not serves(good, b"value"):
            raise SystemExit("the good client was not served")
        found.append((time.perf_counter() - began) * 1000)
    return found


def told(name: str, found: list[float]) -> None:
    """Print the percentiles."""
    cuts = statistics.quantiles(found, n=100)
    print(f"{name:<28} {len(found):>8,} records   p50 {cuts[49]:6.2f} ms   p99 {cuts[98]:6.2f} ms", flush=True)


def be_hostile(bootstrap: str, seconds: float) -> None:
    """Attack until time is over, and print how often."""

    class There:
        """As much of a cluster as `attack` looks at."""

        def __init__(self) -> None:
            self.bootstrap = bootstrap

    with Cluster() as own:
        prepare(own)
        frames = corpus(own)
    seed, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        attack(There(), hostile(random.Random(seed), frames), patience=1.0)  # type: ignore[arg-type]
        seed += 1
    print(seed)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a client notices of hostile neighbours.")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each of both (default: %(default)s)")
    parser.add_argument("--attack", metavar="BOOTSTRAP", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.attack:
        be_hostile(args.attack, args.seconds)
        return
    logging.getLogger("abeyance.broker").setLevel(logging.ERROR)
    with Cluster() as kafka, ExitStack() as held:
        prepare(kafka)
        host, _, port = kafka.bootstrap.rpartition(":")
        good = held.enter_context(WireClient(kafka.bootstrap))
        latencies(good, 1.0)
        told("alone", latencies(good, args.seconds))
        for _ in range(_IDLE):
            held.enter_context(socket.create_connection((host, int(port)), timeout=30))
        told(f"beside {_IDLE:,} idle clients", latencies(good, args.seconds))
        slow = held.enter_context(socket.create_connection((host, int(port)), timeout=30))
        slow.setblocking(False)
        ask = encoded(3, 1, 1, topics=None)
        flood = (len(ask).to_bytes(4, "big") + ask) * 10_000
        try:
            while slow.send(flood):
                pass
        except BlockingIOError:
            pass  # it does not read, so it is not read from any more
        command = [sys.executable, "-m", "broker.neighbour", "--attack", kafka.bootstrap]
        with subprocess.Popen([*command, "--seconds", str(args.seconds + 2)], stdout=subprocess.PIPE, text=True) as bad:
            time.sleep(2.0)  # until it has begun
            told("and hostile ones", latencies(good, args.seconds - 1))
            said = bad.communicate()[0]
        print(f"{int(said):,} hostile connections")


if __name__ == "__main__":
    main()
