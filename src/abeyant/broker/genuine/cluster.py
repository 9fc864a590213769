"""Run three KRaft nodes of Apache Kafka on loopback, each of them both broker and controller."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from abeyant.broker.genuine.distribution import HERE, ClusterError, Kafka, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

NODES = (1, 2, 3)
HOST = "127.0.0.1"
START_SECONDS = 60.0

# Any 16 bytes in base64, fixed so that repeated captures have the same cluster id.
CLUSTER_ID = "QWJleWFuY2VLYWZrYTAwMQ"

# Use only the first JIT compiler (C1), with the code cache size of both, for a fast start.
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")

# Settings that differ from Kafka's defaults.
SETTINGS = {
    "num.replica.fetchers": "1",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "3",
    "auto.create.topics.enable": "false",
    # Leaders must not move back after a freeze.
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.enable": "false",
    # Three nodes and all clients share two cores.
    "num.network.threads": "2",
    "num.io.threads": "4",
}


@dataclass
class Node:
    """One broker: its folder, its ports and its process."""

    number: int
    folder: Path
    port: int
    controller_port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    frozen: bool = False

    @property
    def logs(self) -> Path:
        """Return the folder of this broker's log files, such as server.log."""
        return self.folder / "logs"

    @property
    def is_running(self) -> bool:
        """Return whether the node's process exists, frozen or not."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process. Raises ClusterError if it is not running."""
        if self.process is None or not self.is_running:
            raise ClusterError(f"broker {self.number} is not running (see {self.logs})")
        self.process.send_signal(number)
        self.frozen = number == signal.SIGSTOP


class Cluster:
    """A cluster of three nodes, which it starts, freezes and stops."""

    def __init__(
        self,
        kafka: Kafka,
        work: Path,
        base_port: int,
        *,
        settings: Mapping[str, str] | None = None,
        request_level: str = "OFF",
        heap_mb: int = 700,
        brief: bool = False,
    ) -> None:
        """Prepare nodes with folders below `work`, without starting them.

        Their ports are base_port + 1, 2, 3 for clients and base_port + 11, 12, 13 for controllers. `settings` are added
        to `SETTINGS`; `request_level` is the level of Kafka's request logger. `brief` makes brokers start faster and
        run slower, for runs of about a minute.
        """
        self.kafka = kafka
        self._settings = SETTINGS | dict(settings or {})
        self._level = request_level
        self._heap_mb = heap_mb
        self._compiler = _BRIEF if brief else ()
        self.nodes = {n: Node(n, work / f"broker-{n}", base_port + n, base_port + 10 + n) for n in NODES}
        self.bootstrap = ",".join(f"{HOST}:{node.port}" for node in self.nodes.values())

    def start(self) -> None:
        """Format and start all nodes. Return when all of them serve."""
        for node in self.nodes.values():
            for port in (node.port, node.controller_port):
                _require_free(port)
            node.logs.mkdir(parents=True)
            self._configure(node)
            self._format(node)
        # Two of three voters are a quorum. Start node 3 after one of the others leads the quorum, so that node 3, which
        # is frozen later, is not the active controller.
        for number in (1, 2):
            self._launch(self.nodes[number])
        for number in (1, 2):
            self._await_started(self.nodes[number])
        self._launch(self.nodes[3])
        self._await_started(self.nodes[3])

    def stop(self) -> None:
        """Stop all nodes. May be called at any time, any number of times."""
        running = [n.process for n in self.nodes.values() if n.process and n.process.poll() is None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        until = time.monotonic() + 15
        for process in running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def freeze(self, number: int) -> None:
        """Freeze a broker with SIGSTOP, as a long garbage collection or a stalled machine would."""
        self.nodes[number].signal(signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        """Resume a frozen broker."""
        self.nodes[number].signal(signal.SIGCONT)

    def kill(self, number: int) -> None:
        """Kill a broker with SIGKILL."""
        node = self.nodes[number]
        node.signal(signal.SIGKILL)
        assert node.process is not None
        node.process.wait()
        node.frozen = False

    def stop_one(self, number: int) -> None:
        """Shut down a broker, which first hands over the partitions that it leads."""
        node = self.nodes[number]
        if node.process is not None:
            terminate(node.process, seconds=30.0)
        node.frozen = False

    def restart(self, number: int) -> None:
        """Start a killed or stopped broker again, with its data. Return when it serves."""
        node = self.nodes[number]
        (node.logs / "server.log").rename(node.logs / f"server.log.{time.monotonic_ns()}")
        self._launch(node)
        self._await_started(node)

    @contextlib.contextmanager
    def running(self) -> Iterator[Cluster]:
        """Start the nodes, and stop them at the end of the block."""
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def check_alive(self, but: Collection[int] = ()) -> None:
        """Raise ClusterError if a broker that is not in `but` has exited."""
        for node in self.nodes.values():
            if node.number not in but and not node.is_running:
                raise ClusterError(f"broker {node.number} has ended (see {node.logs}/server.log)")

    def _configure(self, node: Node) -> None:
        voters = ",".join(f"{n.number}@{HOST}:{n.controller_port}" for n in self.nodes.values())
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node.number),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(node.folder / "data"),
            **self._settings,
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (node.folder / "server.properties").write_text(text)

    def _format(self, node: Node) -> None:
        command = self.kafka.command(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID,
            "-c", str(node.folder / "server.properties"), options=(*_BRIEF, *self._logging(node)),
        )  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise ClusterError(f"formatting the storage of broker {node.number} failed:\n{result.stderr[-2000:]}")

    def _launch(self, node: Node) -> None:
        options = (f"-Xmx{self._heap_mb}m", "-Xms256m", "-XX:+UseSerialGC", *self._compiler, *self._logging(node))
        command = self.kafka.command("kafka.Kafka", str(node.folder / "server.properties"), options=options)
        with (node.folder / "stdout").open("wb") as out:
            # In its own session, so that Ctrl-C only reaches us, and we shut it down.
            node.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    def _logging(self, node: Node) -> tuple[str, ...]:
        return (
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
            f"-Dkafka.logs.dir={node.logs}",
            f"-Dkafka.request.level={self._level}",
        )

    def _await_started(self, node: Node) -> None:
        until = time.monotonic() + START_SECONDS
        log = node.logs / "server.log"
        while time.monotonic() < until:
            if node.process is None or node.process.poll() is not None:
                tail = (node.folder / "stdout").read_text(errors="replace")[-2000:]
                raise ClusterError(f"broker {node.number} exited while it started (see {log})\n{tail}")
            if log.exists() and "Kafka Server started" in log.read_text(errors="replace"):
                return
            time.sleep(0.2)
        raise ClusterError(f"broker {node.number} did not start within {START_SECONDS:.0f} s (see {log})")


def free_ports() -> int:
    """Return a base port from which all six ports of a cluster are free. Raises ClusterError if none is found."""
    for base in range(21_000 + 20 * (os.getpid() % 400), 32_000, 20):
        try:
            for number in NODES:
                _require_free(base + number)
                _require_free(base + 10 + number)
        except ClusterError:
            continue
        return base
    raise ClusterError("no six ports up to 32,000 are free for three brokers: end programs that use some")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ClusterError(f"port {port} is taken (choose another --base-port)") from error


def terminate(process: subprocess.Popen[bytes], seconds: float = 5.0) -> None:
    """Terminate a process; kill it if it still runs after `seconds`."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
            process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
