"""Measure three brokers of ours beside genuine Apache Kafka and librdkafka's mock cluster, and print the table.

python -m lab.broker                    all rows, all peers; medians of 3 rounds
python -m lab.broker --quick            a tenth of the records, one round
python -m lab.broker --peers abeyant    ours alone, no JVM
python -m lab.broker --write            and write the table to docs/benchmarks-broker.md
"""

from __future__ import annotations

import argparse
import compileall
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException

import abeyant
from abeyant.broker.genuine import ClusterError
from lab.broker import client, groups, locks, page, waiting
from lab.broker.page import BATCHES, FETCHES, MEMBERS, REBALANCED
from lab.broker.peers import PEERS, PeerError, Serving, allow_connections
from lab.broker.relay import relay_latency
from lab.machine import Others, load

LARGEST = 1_000_000  # records of a throughput row
LONG_PAUSE, SHORT_PAUSE = 0.02, 0.002  # seconds between the records that wake long polls

_Figures = Iterable[tuple[str, float]]


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.broker", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each over every peer (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="begin no round that would end later (default: %(default)s)"
    )
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--write", action="store_true", help=f"write the table to {page.PATH}")
    return parser.parse_args(argv)


class _Run:
    """A run of the benchmarks: its figures so far, and what could not be measured."""

    def __init__(self, peers: list[str], scale: int) -> None:
        self._peers = peers
        self._scale = scale
        self._figures: dict[str, dict[str, list[float]]] = {}  # by row, then by peer
        self._absent: set[str] = set()
        self.gaps: dict[str, str] = {}  # by peer, why a figure of it is missing
        self.rounds = 0

    def round(self) -> None:
        """Measure every peer once. A peer that does not start is skipped in all further rounds."""
        self.rounds += 1
        for name in self._peers:
            if name in self._absent:
                continue
            try:
                with PEERS[name].serve() as peer:
                    for measurement in _measurements(name, peer, self._scale, first_round=self.rounds == 1):
                        self._run_one(name, measurement)
            except (PeerError, ClusterError, OSError) as error:
                self._absent.add(name)
                self._note_gap(name, error)

    def _run_one(self, name: str, measurement: Callable[[], _Figures]) -> None:
        try:
            for row, figure in measurement():
                self._figures.setdefault(row, {}).setdefault(name, []).append(figure)
                print(f"round {self.rounds}  {PEERS[name].label:<26} {row:<14} {figure:14,.3f}", flush=True)
        except (PeerError, KafkaException) as error:
            self._note_gap(name, error)

    def _note_gap(self, name: str, error: Exception) -> None:
        self.gaps[name] = f"{error}".partition("\n")[0]
        print(f"bench-broker: {PEERS[name].label}: {error}", file=sys.stderr)

    @property
    def figures(self) -> page.Figures:
        """Return the medians of the rounds."""
        return {row: {name: statistics.median(f) for name, f in by.items()} for row, by in self._figures.items()}


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Return 1 if a figure of ours is missing."""
    options = _parse(argv)
    allow_connections(max(FETCHES, MEMBERS) + 1_000)
    # pip installs a package with its bytecode; do so even if PYTHONDONTWRITEBYTECODE is set.
    compileall.compile_dir(Path(abeyant.__file__).parent, quiet=2)
    begun, load_before, others = time.monotonic(), load(), Others()
    scale = 10 if options.quick else 1
    run = _Run(options.peers, scale)
    rounds = 1 if options.quick else options.rounds
    last = 0.0  # seconds that the last round took
    while run.rounds < rounds and time.monotonic() - begun + last < options.minutes * 60:
        since = time.monotonic()
        run.round()
        last = time.monotonic() - since
    minutes = (time.monotonic() - begun) / 60
    print(f"\n{run.rounds} of {rounds} rounds in {minutes:.1f} minutes\n\n{page.table(run.figures, scale)}")
    if options.write:
        circumstances = page.Circumstances(run.rounds, minutes, load_before, others.share(), run.gaps, scale)
        Path(page.PATH).write_text(page.render(run.figures, circumstances))
        print(f"bench-broker: wrote {page.PATH}")
    return 1 if "abeyant" in run.gaps else 0


def _measurements(name: str, peer: Serving, scale: int, *, first_round: bool) -> Iterator[Callable[[], _Figures]]:
    """Yield the peer's measurements in order: functions that return rows and figures, or raise PeerError."""
    yield lambda: _started(name, peer)
    yield lambda: [("memory", peer.memory())]
    if first_round and name != "mock":  # the mock has no followers and creates topics with four partitions
        yield lambda: [("idle", waiting.idle(peer, seconds=(60 if name == "abeyant" else 20) / scale))]
    yield lambda: client.produce_latency(peer, 5_000 // scale).rows("produce")
    yield lambda: client.wake_latency(peer, 400 // scale, LONG_PAUSE).rows("wake")
    if name != "mock":  # half a second each
        yield lambda: client.wake_latency(peer, 2_000 // scale, SHORT_PAUSE).rows("wake-soon")
    if name == "abeyant":
        yield lambda: relay_latency(400 // scale, LONG_PAUSE).rows("relay")
    yield lambda: [("produce-all", client.produce_rate(peer, LARGEST // scale, "all", replicas=3))]
    yield lambda: [("produce-one", client.produce_rate(peer, LARGEST // scale, "1", replicas=1))]
    if name != "mock":  # the mock keeps the last 5 MB, and a fetch waits its whole max.wait
        yield lambda: client.consume(peer, LARGEST // scale).rows()
        yield lambda: waiting.measure(peer, FETCHES // scale, seconds=10).rows()
        yield lambda: locks.measure(peer, BATCHES // scale).rows()
        yield lambda: groups.measure(peer, MEMBERS // scale, REBALANCED // scale, seconds=15).rows()


def _started(name: str, peer: Serving) -> Iterator[tuple[str, float]]:
    yield from peer.started.items()
    if name == "kafka":
        client.send_one(peer, client.make_topic(peer), partition=0)
        yield "first", peer.age()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
