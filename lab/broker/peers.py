"""The peers that are measured: clusters of three brokers, in other processes than the client's."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from abeyant.broker.genuine import Cluster, fetch, free_ports

_PROCESS_CLOCK = 2  # Linux's clock type for a process's CPU time
_STOP_TIMEOUT = 30.0  # seconds
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class PeerError(Exception):
    """Raised if a peer is missing, or failed during a measurement; the text says why."""


def allow_connections(count: int) -> None:
    """Raise the limit of open files to `count`, for child processes too. Raise SystemExit if that is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except (ValueError, OSError) as error:
        raise SystemExit(f"bench-broker: error: needs {count:,} open files; run: ulimit -n {count} ({error})") from None


@dataclass
class Serving:
    """A running cluster."""

    bootstrap: str
    pids: list[int]
    started: dict[str, float] = field(default_factory=dict)  # seconds: listening, first, another
    creates_topics: bool = True
    begun: float = field(default_factory=time.perf_counter)

    def age(self) -> float:
        """Return the seconds since the cluster's start began."""
        return time.perf_counter() - self.begun

    def cpu(self) -> float:
        """Return the CPU seconds of all the cluster's processes so far."""
        return sum(map(processor_seconds, self.pids))

    def memory(self) -> float:
        """Return the proportional set size of all the cluster's processes, in MB."""
        return sum(_resident(pid) for pid in self.pids) / 1e6


@dataclass(frozen=True)
class Peer:
    """A peer: its label, and how to start it."""

    label: str
    serve: Callable[[], AbstractContextManager[Serving]]


def _subprocess(name: str, *, creates_topics: bool) -> Callable[[], AbstractContextManager[Serving]]:
    @contextmanager
    def serve() -> Iterator[Serving]:
        command = [sys.executable, "-m", "lab.broker.serve", name]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise PeerError(f"{name} did not start (exit status {process.wait()})")
            ready = json.loads(line)
            started = {key: ready[key] for key in ("listening", "first", "another") if key in ready}
            try:
                yield Serving(ready["bootstrap"], [process.pid], started, creates_topics)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(_STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    process.kill()

    return serve


@contextmanager
def _genuine() -> Iterator[Serving]:
    kafka = fetch()
    # As ours: a group's first members do not wait 3 s for others.
    settings = {"min.insync.replicas": "1", "group.initial.rebalance.delay.ms": "0"}
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(kafka, Path(folder), free_ports(), settings=settings)
        begun = time.perf_counter()
        with cluster.running():
            listening = time.perf_counter() - begun
            pids = [node.process.pid for node in cluster.nodes.values() if node.process is not None]
            yield Serving(cluster.bootstrap, pids, {"listening": listening}, begun=begun)


PEERS = {
    "abeyant": Peer("Abeyant", _subprocess("abeyant", creates_topics=True)),
    "kafka": Peer("Apache Kafka, three JVMs", _genuine),
    "mock": Peer("librdkafka's mock", _subprocess("mock", creates_topics=False)),
}


def processor_seconds(pid: int) -> float:
    """Return another process's CPU seconds so far, of all threads; to the nanosecond, unlike /proc."""
    return time.clock_gettime(~pid << 3 | _PROCESS_CLOCK)


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
