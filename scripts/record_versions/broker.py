"""One genuine broker of any version, on loopback, with its request logger at DEBUG."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abeyant.broker.genuine import ClusterError
from abeyant.broker.genuine.distribution import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .versions import Release

_START_SECONDS: Final = 90.0
_CLUSTER_ID: Final = "QWJleWFuY2VLYWZrYTAwMQ"
_LOG4J_2: Final = Path(__file__).parents[2] / "src" / "abeyant" / "broker" / "genuine" / "log4j2.properties"

# As Kafka's own config/log4j.properties has it.
_LOG4J: Final = """\
log4j.rootLogger=INFO, server
log4j.appender.server=org.apache.log4j.FileAppender
log4j.appender.server.File={logs}/server.log
log4j.appender.server.layout=org.apache.log4j.PatternLayout
log4j.appender.server.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.request=org.apache.log4j.FileAppender
log4j.appender.request.File={logs}/kafka-request.log
log4j.appender.request.layout=org.apache.log4j.PatternLayout
log4j.appender.request.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.request.logger=DEBUG, request
log4j.additivity.kafka.request.logger=false
"""
_COMMON: Final = {
    "log.dirs": "{folder}/data",
    "num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.io.threads": "2",
    "num.network.threads": "2",
}
_ZOOKEEPER: Final = {
    "broker.id": "1",
    "host.name": "127.0.0.1",
    "port": "{port}",
    "listeners": "PLAINTEXT://127.0.0.1:{port}",
    "zookeeper.connect": "127.0.0.1:{other}",
}
_KRAFT: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{other}",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:{other}",
}


@contextlib.contextmanager
def running_broker(release: Release, folder: Path, port: int, other: int) -> Iterator[Path]:
    """Run the broker on `port`, with ZooKeeper or its controller on `other`; yield the path of its request log.

    Raises ClusterError where it does not start.
    """
    shutil.rmtree(folder, ignore_errors=True)
    logs = folder / "logs"
    logs.mkdir(parents=True)
    (folder / "log4j.properties").write_text(_LOG4J.format(logs=logs))
    chosen = _COMMON | (_ZOOKEEPER if release.has_zookeeper else _KRAFT)
    if release.number >= (3,):  # which knows these two no more
        chosen = {name: value for name, value in chosen.items() if name not in ("host.name", "port")}
    settings = folder / "server.properties"
    places = {"folder": folder, "port": port, "other": other}
    settings.write_text("".join(f"{name}={value.format_map(places)}\n" for name, value in chosen.items()))
    with contextlib.ExitStack() as stack:
        if release.has_zookeeper:
            zookeeper = folder / "zookeeper.properties"
            zookeeper.write_text(
                f"dataDir={folder}/zookeeper\nclientPort={other}\nmaxClientCnxns=0\nadmin.enableServer=false\n"
            )
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            stack.enter_context(_running(release, folder, "zookeeper", main, zookeeper))
            _await_port(other, "ZooKeeper", logs)
        else:
            _format(release, folder, settings)
        stack.enter_context(_running(release, folder, "kafka", "kafka.Kafka", settings))
        _await_port(port, f"Kafka {release.version}", logs)
        yield logs / "kafka-request.log"


def _java(release: Release, folder: Path, main: str, *arguments: str) -> list[str]:
    logging = (
        [f"-Dlog4j.configuration=file:{folder}/log4j.properties", "-Dzookeeper.jmx.log4j.disable=true"]
        if release.has_zookeeper
        else [
            f"-Dlog4j2.configurationFile={_LOG4J_2}",
            f"-Dkafka.logs.dir={folder}/logs",
            "-Dkafka.request.level=DEBUG",
        ]
    )
    options = ["-Xmx400m", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Djava.net.preferIPv4Stack=true"]
    return ["java", *options, *logging, "-cp", f"{release.jars}/*", main, *arguments]


def _format(release: Release, folder: Path, settings: Path) -> None:
    command = _java(release, folder, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(settings))
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ClusterError(f"Kafka {release.version} cannot format its directory:\n{result.stdout}{result.stderr}")


@contextlib.contextmanager
def _running(release: Release, folder: Path, name: str, main: str, settings: Path) -> Iterator[None]:
    with (folder / f"{name}.out").open("wb") as out:
        process = subprocess.Popen(
            _java(release, folder, main, str(settings)),
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_port(port: int, what: str, logs: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise ClusterError(f"{what} does not listen on {port}; its logs are in {logs.parent}")
