"""One engine from inside and from outside: what the broker logs of its waiting, the pipeline reads and predicts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from abeyant.broker import Cluster
from abeyant.cli import main
from abeyant.pipeline.replication.explanations import OUTCOME
from broker.clients import Delivery, producing, send, settle

LOAD = 600  # produces


def load(producer: Producer, count: int) -> list[Delivery]:
    """Records to both partitions, two at a time."""
    sent = []
    for number in range(count):
        sent.append(send(producer, "orders", b"x" * 100, number % 2))
        if number % 2:
            producer.poll(0.001)
    return sent


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The request logs of three brokers under load, of which one stood still for a while."""
    folder = tmp_path_factory.mktemp("circle") / "logs"
    with Cluster(brokers=3, request_log=folder) as kafka:
        kafka.create_topic("orders", partitions=2, config={"min.insync.replicas": 2})
        with producing(kafka, acks="all", request_timeout_ms=500) as producer:
            found = settle(producer, *load(producer, LOAD))
            with kafka.paused(3):  # which leads neither
                late = settle(producer, *load(producer, 30))
            found += settle(producer, *load(producer, LOAD))
    assert found == [None] * 2 * LOAD
    assert late == ["REQUEST_TIMED_OUT"] * 30
    return folder


@pytest.mark.slow
def test_the_model_predicts_how_and_when_each_produce_ended(spark: SparkSession, logs: Path, tmp_path: Path) -> None:
    assert main(["model", str(logs), "--out", str(tmp_path / "model"), "--quiet"]) == 0
    rows = pq.read_table(tmp_path / "model" / "predictions").to_pylist()
    assert not any(row["explanation"] == OUTCOME for row in rows)
    assert sum(row["logged"] == row["predicted"] == "expired" for row in rows) > 0
    assert sum(abs(row["error_ms"]) <= 1 for row in rows) / len(rows) >= 0.95


@pytest.mark.slow
def test_the_analysis_counts_what_expired(spark: SparkSession, logs: Path) -> None:
    from abeyant.pipeline import KafkaRequestLog

    log = KafkaRequestLog(spark, str(logs))
    assert log.rejected.count() == 0
    expired = log.operations.where("kind = 'PRODUCE' and outcome = 'expired'").collect()
    assert expired
    assert all(row.waited_ms >= 499 for row in expired)  # the time in the handler comes before the wait
