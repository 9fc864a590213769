"""Measure three brokers of ours beside genuine Apache Kafka and librdkafka's mock cluster, and print the table.

python -m benchmarks.broker                     all rows, all peers; medians of 3 rounds
python -m benchmarks.broker --quick             a tenth of the records, one round
python -m benchmarks.broker --peers abeyance    ours alone, no JVM
python -m benchmarks.broker --write             and put the table into docs/benchmarks-broker.md
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.broker import client, page, waiting
from benchmarks.broker.peers import PEERS, Serving
from benchmarks.machine import load

Figures = dict[str, dict[str, float]]  # by row, then by peer


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.broker", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one round")
    parser.add_argument("--rounds", type=int, default=3, help="of every peer in turn (default: %(default)s)")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--write", action="store_true", help=f"put the table into {page.PATH}")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Do as the command line says."""
    options = _arguments(given)
    scale = 10 if options.quick else 1
    rounds = 1 if options.quick else options.rounds
    begun = load()
    found: dict[str, dict[str, list[float]]] = {}
    for round_ in range(rounds):
        for name in options.peers:
            with PEERS[name].serve() as peer:
                for row, figure in _measure(name, peer, scale):
                    found.setdefault(row, {}).setdefault(name, []).append(figure)
                    print(f"round {round_ + 1}/{rounds}  {PEERS[name].label:<26} {row:<48} {figure:12,.3f}", flush=True)
    figures = {row: {name: statistics.median(f) for name, f in by.items()} for row, by in found.items()}
    table = page.table(figures)
    print("\n" + table)
    if options.write:
        Path(page.PATH).write_text(page.whole(table, rounds, begun))
        print(f"bench-broker: wrote {page.PATH}")
    return 0


def _measure(name: str, peer: Serving, scale: int) -> Iterator[tuple[str, float]]:
    """Yield one figure after the other, as they are found."""
    for what in ("listening", "first", "another"):
        seconds = peer.started.get(what)
        if seconds is not None:
            yield what, seconds
    yield "memory", peer.memory()
    if name != "mock":  # it has no followers, and makes topics of four partitions
        yield "idle", waiting.idle(peer, seconds=60 / scale)
    yield from client.produce_latency(peer, 5_000 // scale).rows("produce")
    yield from client.wake_latency(peer, 500 // scale).rows("wake")
    yield "produce-all", client.produce_rate(peer, 1_000_000 // scale, "all", replicas=3)
    yield "produce-one", client.produce_rate(peer, 1_000_000 // scale, "1", replicas=1)
    if name != "mock":  # it keeps the last 5 MB only, and looks at it when a fetch has waited its time
        yield "consume", client.consume_rate(peer, 1_000_000 // scale)
        many = waiting.measure(peer, 10_000 // scale, seconds=20 / scale)
        yield "waiting", many.core
        yield "woken", many.woken / many.expected * 100


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
