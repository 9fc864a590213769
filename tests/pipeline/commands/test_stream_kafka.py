"""The stream over our own broker: no JVM but Spark's. The same over genuine Kafka: tests/real_kafka."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from abeyance.broker import Cluster
from abeyance.pipeline.sources.connector import ConnectorError, maven_jars
from pipeline import kafka_stream


class Brokers:
    """Ours. Broker 2 has its records in memory, so it loses them."""

    def __init__(self, cluster: Cluster) -> None:
        self.bootstrap = cluster.bootstrap
        self._cluster = cluster
        self._ended = False

    def end_one(self) -> None:
        if not self._ended:
            self._cluster.stop(2)
            self._ended = True


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    try:
        maven_jars()
    except ConnectorError as error:
        pytest.skip(f"no connector of Spark's here: {' '.join(str(error).split())}")
    with Cluster(3, settings={"auto.create.topics.enable": "false"}) as cluster:
        yield Brokers(cluster)


@pytest.mark.slow
def test_from_topics_to_a_topic(brokers: Brokers, tmp_path: Path) -> None:
    kafka_stream.from_topics_to_a_topic(brokers, tmp_path)


@pytest.mark.slow
def test_a_topic_that_is_not_there_is_one_line(brokers: Brokers, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "abeyance", "stream", "nowhere", "no-events", "--kafka", brokers.bootstrap]
    options = ["--out", str(tmp_path / "out"), "--quiet"]
    ran = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "does not have all of the topics nowhere, no-events" in ran.stderr
    assert not (tmp_path / "out").exists()
