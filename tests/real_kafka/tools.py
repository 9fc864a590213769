"""Kafka's own command-line tools, which use Kafka's own client: topics, a producer, a consumer."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple

from abeyance.broker.genuine import Cluster, die_with_parent

_SMALL = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_NONE = "~none~"
_RECORD = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(.*?)\t(.*)")


class Record(NamedTuple):
    partition: int
    offset: int
    key: str
    value: str


def tool(cluster: Cluster, name: str, *arguments: str) -> list[str]:
    command = ["--bootstrap-server", cluster.bootstrap, *arguments]
    return cluster.kafka.command(f"org.apache.kafka.tools.{name}", *command, options=_SMALL)


def create_topics(cluster: Cluster, topics: Iterable[str], partitions: int, *settings: str) -> None:
    for topic in topics:
        config = [part for setting in settings for part in ("--config", setting)]
        create = ["--create", "--topic", topic, "--partitions", str(partitions), *config]
        subprocess.run(tool(cluster, "TopicCommand", *create), check=True, capture_output=True)


class Producer:
    """Kafka's console producer: waits for all replicas, and leaves when the block does, all sent."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        options = [f"--topic={topic}", "--request-timeout-ms=4000", "--message-send-max-retries=1000"]
        options += [f"--command-property={one}" for one in ("acks=all", "linger.ms=20", "delivery.timeout.ms=60000")]
        reader = ["parse.key=true", f"null.marker={_NONE}"]
        command = [*tool(cluster, "ConsoleProducer"), *options, *(f"--reader-property={one}" for one in reader)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=die_with_parent,
        )  # fmt: skip

    def send(self, key: str, value: str | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{key}\t{_NONE if value is None else value}\n")

    def flush(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.flush()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        said, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, said
        assert "ERROR" not in said, said


def consume(cluster: Cluster, topic: str, partitions: int) -> list[Record]:
    """All that is in a topic now: no group, so nothing has to be coordinated."""
    show = ["print.key", "print.partition", "print.offset"]
    common = ["--topic", topic, "--offset", "earliest", "--timeout-ms", "4000"]
    common += [f"--formatter-property={one}=true" for one in show]
    consumers = [
        subprocess.Popen(
            tool(cluster, "consumer.ConsoleConsumer", *common, "--partition", str(partition)),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent,
        )
        for partition in range(partitions)
    ]  # fmt: skip
    said = [consumer.communicate(timeout=90)[0] for consumer in consumers]
    found = [_RECORD.fullmatch(line) for text in said for line in text.splitlines()]
    return [Record(int(f[1]), int(f[2]), f[3], f[4]) for f in found if f is not None]
