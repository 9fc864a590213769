"""The waiting, as unmodified confluent-kafka and Java's own client see it: in real time, and with the clock held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from abeyant.broker import Cluster
from clients.waiting import FETCHER, Client, Java, Times, confluent

TOPIC = "orders"
RECORD = 1000  # bytes of a value


@pytest.fixture(params=["confluent", "java"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "java":
        driver = request.getfixturevalue("java")
        yield Java(driver)
        driver.ask(do="forget")
        return
    with confluent() as made:
        yield made


@pytest.fixture(params=["real", "held"])
def clock(request: pytest.FixtureRequest) -> Literal["real", "held"]:
    kind: Literal["real", "held"] = request.param
    return kind


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture
def kafka(clock: Literal["real", "held"], settings: dict[str, Any]) -> Iterator[Cluster]:
    with Cluster(brokers=3, clock=clock, settings=settings) as cluster:
        cluster.create_topic(TOPIC)
        yield cluster


@pytest.fixture
def times(kafka: Cluster, clock: str) -> Times:
    return Times(kafka, held=clock == "held")


def test_k2_a_paused_follower_is_a_time_out_and_the_record_stays(kafka: Cluster, client: Client, times: Times) -> None:
    assert client.produce(kafka, TOPIC, 1.5).result(60).error is None
    with kafka.paused(2):
        late = client.produce(kafka, TOPIC, 1.5)
        times.arrived("Produce")
        ended = times.never_before(late, 1.5)
        assert ended.error == "REQUEST_TIMED_OUT"
        print(f"\nafter {ended.seconds:.4f} s")
    assert len(kafka.records(TOPIC, beyond_high_watermark=True)) == 2


def test_k2_a_follower_that_comes_back_is_a_success(kafka: Cluster, client: Client, times: Times) -> None:
    assert client.produce(kafka, TOPIC, 1.5).result(60).error is None
    kafka.pause(2)
    late = client.produce(kafka, TOPIC, 1.5)
    times.arrived("Produce")
    times.spend(0.7)
    assert not late.done()
    kafka.resume(2)
    ended = late.result(60)
    assert ended.error is None
    print(f"\nafter {ended.seconds:.4f} s")


@pytest.mark.parametrize("settings", [{"replica.lag.time.max.ms": 1000}])
def test_the_in_sync_set_shrinks_and_the_produce_succeeds(kafka: Cluster, client: Client, times: Times) -> None:
    assert client.produce(kafka, TOPIC, 30).result(60).error is None
    kafka.pause(2)
    late = client.produce(kafka, TOPIC, 30)
    times.arrived("Produce")
    if times.held:
        times.spend(0.5)
        assert not late.done()
        times.spend(1.6)  # a look at the in-sync sets each half of the setting
    assert late.result(60).error is None
    assert kafka.in_sync(TOPIC) == (1, 3)


@pytest.mark.parametrize("settings", [{"replica.lag.time.max.ms": 500, "min.insync.replicas": 3}])
def test_k2_with_too_few_in_sync_it_is_not_acknowledged(kafka: Cluster, client: Client, times: Times) -> None:
    """As Kafka 4: the high watermark is held, so that it times out; the next is refused beforehand."""
    assert client.produce(kafka, TOPIC, 2).result(60).error is None
    kafka.pause(2)
    late = client.produce(kafka, TOPIC, 2)
    times.arrived("Produce")
    assert times.never_before(late, 2).error == "REQUEST_TIMED_OUT"
    assert kafka.in_sync(TOPIC) == (1, 3)
    assert client.produce(kafka, TOPIC, 2).result(60).error == "NOT_ENOUGH_REPLICAS"


def test_k3_a_fetch_waits_for_the_last_byte(kafka: Cluster, client: Client, times: Times) -> None:
    reading = client.fetch(kafka, TOPIC, 10 * RECORD, 30.0)
    times.arrived("Fetch", FETCHER)
    with confluent() as writer:
        for _ in range(9):
            assert writer.produce(kafka, TOPIC, 30, RECORD).result(60).error is None
        times.spend(0.3)
        assert not reading.done()
        assert writer.produce(kafka, TOPIC, 30, RECORD).result(60).error is None
    assert reading.result(60).number == 10


def test_k3_or_for_max_wait(kafka: Cluster, client: Client, times: Times) -> None:
    assert client.produce(kafka, TOPIC, 30, RECORD).result(60).error is None
    reading = client.fetch(kafka, TOPIC, 10 * RECORD, 1.5)
    times.arrived("Fetch", FETCHER)
    ended = times.never_before(reading, 1.5)
    assert ended.number == 1
    print(f"\nafter {ended.seconds:.4f} s")


def test_k6_delete_records_waits_for_the_paused_replica(kafka: Cluster, client: Client, times: Times) -> None:
    for _ in range(3):
        assert client.produce(kafka, TOPIC, 30).result(60).error is None
    assert client.delete_records(kafka, TOPIC, 0, 30).result(60).error is None  # it knows who leads
    kafka.pause(2)
    deleting = client.delete_records(kafka, TOPIC, 1, 30)
    times.arrived("DeleteRecords")
    times.spend(0.7)
    assert not deleting.done()
    kafka.resume(2)
    ended = deleting.result(60)
    assert (ended.error, ended.number) == (None, 1)
    kafka.pause(2)
    deleting = client.delete_records(kafka, TOPIC, 2, 1.5)
    times.arrived("DeleteRecords")
    assert times.never_before(deleting, 1.5).error == "REQUEST_TIMED_OUT"
