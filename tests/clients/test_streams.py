"""Kafka Streams' word count, exactly once, while brokers and the application itself end and come back."""

from __future__ import annotations

import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from abeyant.broker import Cluster
from abeyant.broker.coordinator.topics import OFFSETS, partition_for
from abeyant.broker.genuine import Kafka, die_with_parent
from broker.clients import producing, send, settle
from clients import toolchains
from clients.java import Programs, compiled
from waiting import wait_until

GROUP = "words"
WORDS = ("abeyant", "bucket", "cascade", "deadline", "expiry", "fetch", "generation")
PARTITIONS = 3


TIMES = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
# Members of the classic protocol choose their times; those of the streams protocol have the broker's.
OF_CLASSIC = {f"consumer.{name}": value for name, value in TIMES.items()}
OF_STREAMS = {f"group.streams.{kind}{name}": str(value) for name, value in TIMES.items() for kind in ("", "min.")}


@contextmanager
def application(programs: Programs, kafka: Cluster, folder: Path, protocol: str) -> Iterator[subprocess.Popen[str]]:
    """It runs for as long as the block does, and then ends as one that is asked to, if it has not been killed."""
    settings = {
        "application.id": GROUP, "bootstrap.servers": kafka.bootstrap, "state.dir": folder, "num.stream.threads": 2,
        "commit.interval.ms": 100, "group.protocol": protocol, **(OF_CLASSIC if protocol == "classic" else {}),
        # Of its own topics, too: by default a topic has one replica, and a broker that ends in memory loses that.
        "replication.factor": 3,
    }  # fmt: skip
    process = subprocess.Popen(
        programs.command("WordCount", *(f"{name}={value}" for name, value in settings.items())),
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent,
    )  # fmt: skip
    with process:
        try:
            yield process
            if process.poll() is None:
                process.communicate(timeout=60)
        finally:
            process.kill()


class Lines:
    """What is sent, and what is therefore to be counted."""

    def __init__(self, kafka: Cluster) -> None:
        self._kafka = kafka
        self._dice = random.Random(4)
        self.counted: Counter[str] = Counter()

    def send(self, count: int) -> None:
        lines = [self._dice.choices(WORDS, k=4) for _ in range(count)]
        with producing(self._kafka, acks="all", enable_idempotence=True, retries=1_000) as producer:
            sent = [send(producer, "lines", " ".join(line).encode(), n % PARTITIONS) for n, line in enumerate(lines)]
            assert set(settle(producer, *sent)) == {None}
        for line in lines:
            self.counted.update(line)

    def told(self) -> dict[str, list[int]]:
        """What a reader of committed data has of each word, in order."""
        found: dict[str, list[int]] = {}
        for one in self._kafka.records("counts", isolation="read_committed"):
            found.setdefault((one.key or b"").decode(), []).append(int.from_bytes(one.value or b"", "big"))
        return found

    def are_counted(self) -> bool:
        return sum(map(len, self.told().values())) >= self.counted.total()


def restart(kafka: Cluster, broker: int) -> None:
    """Stop it and start it. In memory its records are gone: wait until it has them again."""
    kafka.stop(broker)
    kafka.start(broker)
    wait_until(lambda: in_sync(kafka))


def in_sync(kafka: Cluster) -> bool:
    topics = kafka.controller.topics.values()
    return kafka._on_loop(
        lambda: all(len(state.isr) == len(state.replicas) for topic in topics for state in topic.partitions)
    )


def coordinator_of(kafka: Cluster, group: str) -> int:
    count = len(kafka.controller.topics[OFFSETS.name].partitions)
    leader = kafka.leader(OFFSETS.name, partition_for(group, count))
    assert leader is not None
    return leader


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_word_count_over_restarts(jars: Kafka, tmp_path: Path, protocol: str) -> None:
    """K1: of the coordinators of the group and of a transaction, of a third broker, and, killed, of the application."""
    streams = toolchains.streams_jars(jars)
    programs = compiled(jars, tmp_path / "classes", "WordCount", also=streams)
    with Cluster(3, settings={"min.insync.replicas": 2, **OF_STREAMS}) as kafka:
        for topic in ("lines", "counts"):
            kafka.create_topic(topic, partitions=PARTITIONS)
        lines = Lines(kafka)
        with application(programs, kafka, tmp_path / "state", protocol) as first:
            lines.send(300)
            wait_until(lines.are_counted)
            assert kafka.group(GROUP).protocol == protocol
            coordinator = coordinator_of(kafka, GROUP)
            for broker in (coordinator, *({1, 2, 3} - {coordinator})):
                lines.send(300)
                restart(kafka, broker)
            lines.send(300)
            wait_until(lines.are_counted)
            lines.send(300)
            first.send_signal(signal.SIGKILL)
        with application(programs, kafka, tmp_path / "state", protocol):
            lines.send(300)
            wait_until(lines.are_counted)
        assert lines.told() == {word: list(range(1, count + 1)) for word, count in lines.counted.items()}
