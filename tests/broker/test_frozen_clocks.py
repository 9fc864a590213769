"""A test that freezes its own clocks does not stop the brokers in the thread beside it."""

import pytest
from confluent_kafka import Producer

from abeyant.broker import Cluster

freezegun = pytest.importorskip("freezegun")
# It looks at every name of every module; those of this package load Spark and pandas, if a test before has imported it.
LAZY = ["abeyant.pipeline"]


def produce(kafka: Cluster, timestamp_ms: int) -> None:
    kafka.create_topic("orders", replicas=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all"})
    producer.produce("orders", b"order", timestamp=timestamp_ms)
    assert producer.flush(30) == 0
    assert [record.value for record in kafka.records("orders")] == [b"order"]


def test_brokers_made_before_go_on() -> None:
    with Cluster(brokers=2) as kafka, freezegun.freeze_time("2030-01-01", ignore=LAZY):
        produce(kafka, 1)


@pytest.mark.slow
def test_brokers_made_meanwhile_go_on_and_take_records_of_that_date() -> None:
    with freezegun.freeze_time("2030-01-01", ignore=LAZY), Cluster(brokers=2) as kafka:
        produce(kafka, 1_893_456_000_000)
