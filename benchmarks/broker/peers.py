"""Who is measured: three brokers each, in processes apart from the client's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from abeyance.broker.genuine import Cluster, fetch, free_ports

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Serving:
    """A cluster that listens."""

    bootstrap: str
    pids: list[int]
    started: dict[str, float | None] = field(default_factory=dict)  # seconds: listening, first, another
    creates_topics: bool = True

    def cpu(self) -> float:
        """Seconds of processor time so far, all its processes."""
        return sum(_cpu(pid) for pid in self.pids)

    def memory(self) -> float:
        """Megabytes that are resident, all its processes; what is shared is divided."""
        return sum(_resident(pid) for pid in self.pids) / 1e6


@dataclass(frozen=True)
class Peer:
    """One that can be measured."""

    label: str
    serve: Callable[[], AbstractContextManager[Serving]]


def _served_by(what: str, *, creates_topics: bool) -> Callable[[], AbstractContextManager[Serving]]:
    @contextmanager
    def serve() -> Iterator[Serving]:
        command = [sys.executable, "-m", "benchmarks.broker.serve", what]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"bench-broker: error: {what} did not start (exit status {process.wait()})")
            said = json.loads(line)
            started = {name: said[name] for name in ("listening", "first", "another")}
            try:
                yield Serving(said["bootstrap"], [process.pid], started, creates_topics)
            finally:
                assert process.stdin is not None
                process.stdin.close()

    return serve


@contextmanager
def _genuine() -> Iterator[Serving]:
    kafka = fetch()
    settings = {"min.insync.replicas": "1"}
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(kafka, Path(folder), free_ports(), settings=settings)
        begun = time.perf_counter()
        with cluster.running():
            listening = time.perf_counter() - begun
            pids = [node.process.pid for node in cluster.nodes.values() if node.process is not None]
            yield Serving(cluster.bootstrap, pids, {"listening": listening, "first": None, "another": None})


PEERS = {
    "abeyance": Peer("Abeyance", _served_by("abeyance", creates_topics=True)),
    "kafka": Peer("Apache Kafka, three JVMs", _genuine),
    "mock": Peer("librdkafka's mock", _served_by("mock", creates_topics=False)),
}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICKS


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
