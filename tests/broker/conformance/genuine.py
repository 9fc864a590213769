"""Genuine Apache Kafka as the brokers of a scenario: three JVMs on loopback."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from abeyant.broker.genuine import Cluster, ClusterError, Kafka, fetch, free_ports

from .client import Connection
from .settings import ADMIN, GUARDED, PASSWORDS, SETTINGS

_PLUGIN = "TakesMetrics"


class GenuineKafka:
    """Plays scenarios on a cluster that runs."""

    patience = 30.0

    def __init__(self, cluster: Cluster, guarded: bool = False) -> None:
        self._cluster = cluster
        self._guarded = guarded

    def connect(self, broker: int, client_id: str | None = "conformance", user: str = ADMIN) -> Connection:
        connection = Connection("127.0.0.1", self._cluster.nodes[broker].port, client_id)
        return connection.log_in(user, PASSWORDS[user]) if self._guarded else connection

    @contextlib.contextmanager
    def paused(self, broker: int) -> Iterator[None]:
        self._cluster.freeze(broker)
        try:
            self._await_stopped(broker)
            yield
        finally:
            self._cluster.thaw(broker)

    def _await_stopped(self, broker: int) -> None:
        """Its last thread stands still a moment after the signal."""
        process = self._cluster.nodes[broker].process
        assert process is not None
        threads = Path(f"/proc/{process.pid}/task")
        while any(one.read_text().rpartition(")")[2].split()[0] != "T" for one in threads.glob("*/stat")):
            time.sleep(0.001)

    def elapse(self, seconds: float) -> None:
        time.sleep(seconds)

    def hasten(self, seconds: float) -> None:
        pass

    def raise_epoch(self, transactional_id: str, epoch: int) -> None:
        pass

    def await_read(self, broker: int) -> None:
        time.sleep(0.1)


@contextlib.contextmanager
def genuine_kafka(folder: Path, guarded: bool = False, plugin: bool = False) -> Iterator[GenuineKafka]:
    """Start three brokers with the settings of this set; raise `ClusterError` where there are none to be had.

    With `plugin` they take clients' metrics.
    """
    # A frozen broker stays a member of the cluster for as long as a scenario freezes it.
    settings = (GUARDED | sasl() if guarded else SETTINGS) | {"broker.session.timeout.ms": "18000"}
    kafka = fetch()
    if plugin:
        settings |= {"metric.reporters": _PLUGIN}
        kafka = dataclasses.replace(kafka, also=(_compiled(kafka, folder / "plugin"),))
    cluster = Cluster(kafka, folder, free_ports(), settings=settings, heap_mb=1500)
    with cluster.running():
        brokers = GenuineKafka(cluster, guarded)
        _await_producer_ids(brokers)
        yield brokers


def _compiled(kafka: Kafka, folder: Path) -> Path:
    """Compile the plugin into a folder."""
    source = Path(__file__).parent / "java" / f"{_PLUGIN}.java"
    line = ["javac", "-cp", f"{kafka.jars}/*", "-d", str(folder), str(source)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"javac failed:\n{done.stderr}")
    return folder


def sasl() -> dict[str, str]:
    """SASL for clients and between brokers, by the listener that is named PLAINTEXT; controllers stay without."""
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{module} username="{ADMIN}" password="{PASSWORDS[ADMIN]}" {users};'
        ),
    }


def _await_producer_ids(kafka: GenuineKafka) -> None:
    """A broker's first producer id is refused while it fetches a block of them."""
    for broker in (1, 2, 3):
        with kafka.connect(broker) as connection:
            body = {"transactional_id": None, "transaction_timeout": 60_000}
            while connection.ask("InitProducerId", 5, body)["error_code"] == "COORDINATOR_LOAD_IN_PROGRESS":
                time.sleep(0.1)
