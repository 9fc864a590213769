"""Who is measured: three brokers each, in processes apart from the client's."""

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

_PROCESS_CLOCK = 2  # the kind of clock that counts a process's time, in Linux's number for one
_END_SECONDS = 30.0
_FREELY_COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class PeerError(Exception):
    """A peer that is not there, or does not do what is measured; the text says why."""


def allow_connections(count: int) -> None:
    """Let this process, and those that it starts, have so many files open; end with an error where that is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except (ValueError, OSError) as error:
        raise SystemExit(f"bench-broker: error: {count:,} open files are needed: ulimit -n {count} ({error})") from None


@dataclass
class Serving:
    """A cluster that listens."""

    bootstrap: str
    pids: list[int]
    started: dict[str, float] = field(default_factory=dict)  # seconds: listening, first, another
    creates_topics: bool = True
    begun: float = field(default_factory=time.perf_counter)

    def age(self) -> float:
        """Seconds since it began to start."""
        return time.perf_counter() - self.begun

    def cpu(self) -> float:
        """Seconds of processor time so far, all its processes."""
        return sum(map(processor_seconds, self.pids))

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
        command = [sys.executable, "-m", "lab.broker.serve", what]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_FREELY_COMPILED
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise PeerError(f"{what} did not start (exit status {process.wait()})")
            said = json.loads(line)
            started = {name: said[name] for name in ("listening", "first", "another") if name in said}
            try:
                yield Serving(said["bootstrap"], [process.pid], started, creates_topics)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(_END_SECONDS)
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
    "abeyant": Peer("Abeyant", _served_by("abeyant", creates_topics=True)),
    "kafka": Peer("Apache Kafka, three JVMs", _genuine),
    "mock": Peer("librdkafka's mock", _served_by("mock", creates_topics=False)),
}


def processor_seconds(pid: int) -> float:
    """Processor time that another process has taken so far, all its threads; to the nanosecond, unlike /proc."""
    return time.clock_gettime(~pid << 3 | _PROCESS_CLOCK)


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
