"""The stream over our own broker: no JVM but Spark's. The same over genuine Kafka: tests/real_kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from abeyant.broker import Cluster
from abeyant.pipeline.sources.connector import ConnectorError, maven_jars
from pipeline import kafka_stream
from pipeline.jvm import BRIEF_OPTIONS
from pipeline.kafka_topics import Producer, create_topics


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


# Two commands in one process, because a JVM costs more than both of them.
_ONE_AFTER_THE_OTHER = """
import sys
from abeyant.cli import main

servers, missing, out, *brief = sys.argv[1:]
said = main(["stream", "nowhere", "no-events", "--kafka", servers, "--out", missing, "--quiet", *brief])
print(said, flush=True)
sys.stderr.write("then\\n")
there = ["stream", "orders", "paid", "--kafka", servers, "--out", out, "--to-topic", "outcomes", "--drain", "--quiet"]
sys.exit(main([*there, "--master", "local[2]", *brief]))
"""


@pytest.mark.slow
def test_a_topic_that_is_not_there_is_one_line_and_one_that_is_there_names_its_keys(
    brokers: Brokers, tmp_path: Path
) -> None:
    create_topics(brokers.bootstrap, ["orders", "paid", "outcomes"], 2)
    with Producer(brokers.bootstrap, "orders") as producer:
        for number, key in enumerate(["ant", "bee", "ant", "cat"]):
            order = {"op_id": str(number), "key": key, "start": f"2026-01-01T00:00:0{number}Z", "timeout_ms": 1000}
            producer.send(key, json.dumps(order))
    with Producer(brokers.bootstrap, "paid") as producer:
        producer.send("cat", json.dumps({"key": "cat", "at": "2026-01-01T00:00:03.5Z"}))
    missing, out = tmp_path / "missing", tmp_path / "out"
    command = [sys.executable, "-c", _ONE_AFTER_THE_OTHER, brokers.bootstrap, str(missing), str(out), *BRIEF_OPTIONS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    refused, _, then = ran.stderr.partition("then\n")
    assert ran.stdout.startswith("2\n"), ran.stderr
    assert refused.count("\n") == 1
    assert "does not have all of the topics nowhere, no-events" in refused
    assert not missing.exists()
    assert ran.returncode == 0, then
    keys = pq.read_table(out / "summary" / "expired_keys").to_pylist()
    assert [(row["key"], row["expired"]) for row in keys] == [("ant", 2), ("bee", 1)]
