"""K1 to K4: what waits for replicas, with unmodified confluent-kafka and with the clock held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from abeyant import broker
from abeyant.broker import Cluster
from abeyant.broker.requests.common.call import Call
from broker.clients import consuming, producing, send, settle, take
from waiting import wait_until

TOPIC = "orders"


def waiting_produces(kafka: Cluster) -> int:
    return sum(one.produce_purgatory.delayed for one in kafka.brokers.values())


def test_k2_a_paused_follower_makes_an_acks_all_produce_time_out() -> None:
    with broker.Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks="all", request_timeout_ms=1500) as producer:
            assert settle(producer, send(producer, TOPIC, b"before")) == [None]
            kafka.pause(2)
            late = send(producer, TOPIC, b"late")
            wait_until(lambda: waiting_produces(kafka) == 1)
            kafka.clock.advance(1.4)
            assert not late.done
            kafka.clock.advance(0.2)
            assert settle(producer, late) == ["REQUEST_TIMED_OUT"]
            kafka.resume(2)
        with consuming(kafka, (TOPIC, 0)) as consumer:  # what was appended stays
            assert [message.value() for message in take(consumer, 2)] == [b"before", b"late"]


def test_k2_a_follower_that_comes_back_lets_it_succeed() -> None:
    with broker.Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks="all", request_timeout_ms=1500) as producer:
            kafka.pause(3)
            late = send(producer, TOPIC, b"late")
            wait_until(lambda: waiting_produces(kafka) == 1)
            kafka.clock.advance(0.7)
            assert not late.done
            kafka.resume(3)
            assert settle(producer, late) == [None]


def test_a_record_reaches_the_waiting_consumer_before_its_acks_1_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[str] = []

    def noting(answer: Callable[[Call, Any], None]) -> Callable[[Call, Any], None]:
        def note(call: Call, response: Any) -> None:
            answered.append(call.api.name)
            answer(call, response)

        return note

    with broker.Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks=1) as producer, consuming(kafka, (TOPIC, 0)) as consumer:
            assert settle(producer, send(producer, TOPIC, b"before")) == [None]
            take(consumer, 1)
            wait_until(lambda: "rdkafka" in [one.client_id for one in kafka.waiting() if one.kind == "Fetch"])
            for name in ("answer", "answer_encoded"):
                monkeypatch.setattr(Call, name, noting(getattr(Call, name)))
            assert settle(producer, send(producer, TOPIC, b"after")) == [None]
            assert [message.value() for message in take(consumer, 1)] == [b"after"]
    assert answered.index("Fetch") < answered.index("Produce")


def test_k4_a_consumer_sees_nothing_beyond_the_high_watermark() -> None:
    with broker.Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks=1) as producer, consuming(kafka, (TOPIC, 0), fetch_wait_max_ms=10) as consumer:
            assert settle(producer, send(producer, TOPIC, b"first")) == [None]
            assert [message.value() for message in take(consumer, 1)] == [b"first"]
            kafka.pause(2)
            assert settle(producer, send(producer, TOPIC, b"second")) == [None]
            leader = kafka.brokers[1].partitions[TOPIC, 0]
            assert (leader.high_watermark, leader.log.end_offset) == (1, 2)
            kafka.clock.advance(0.02)
            assert consumer.poll(0.1) is None
            kafka.resume(2)
            assert [message.value() for message in take(consumer, 1)] == [b"second"]


def test_the_in_sync_set_shrinks_and_the_produce_succeeds() -> None:
    with broker.Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks="all", request_timeout_ms=60_000, message_timeout_ms=90_000) as producer:
            assert settle(producer, send(producer, TOPIC, b"before")) == [None]
            # Broker 2's fetches are never answered; it has not fallen silent, so it stays a broker.
            kafka._gate = lambda passage: str(passage.client_id).startswith("broker-2-")
            late = send(producer, TOPIC, b"late")
            wait_until(lambda: waiting_produces(kafka) == 1)
            kafka.clock.advance(44.0)  # replica.lag.time.max.ms is 30 s, and Kafka looks every half of that
            assert not late.done
            kafka.clock.advance(1.5)
            assert settle(producer, late) == [None]
            assert kafka.controller.topics[TOPIC].partitions[0].isr == (1, 3)


def test_k1_what_was_acknowledged_survives_the_leader() -> None:
    with broker.Cluster(brokers=3) as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks="all") as producer:
            assert settle(producer, *[send(producer, TOPIC, b"%d" % number) for number in range(20)]) == [None] * 20
        kafka.stop(1)
        assert kafka.controller.topics[TOPIC].partitions[0].leader == 2
        kafka.start(1)
        wait_until(lambda: kafka.controller.topics[TOPIC].partitions[0].isr == (1, 2, 3))
        kafka.stop(2)
        kafka.stop(3)
        assert kafka.controller.topics[TOPIC].partitions[0].leader == 1
        with consuming(kafka, (TOPIC, 0)) as consumer:
            assert [message.value() for message in take(consumer, 20)] == [b"%d" % number for number in range(20)]


def test_a_paused_leader_is_fenced_when_its_session_is_over() -> None:
    with broker.Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks="all") as producer:
            assert settle(producer, send(producer, TOPIC, b"before")) == [None]
        kafka.pause(1)
        kafka.clock.advance(8.9)
        assert kafka.controller.topics[TOPIC].partitions[0].leader == 1
        kafka.clock.advance(0.2)
        state = kafka.controller.topics[TOPIC].partitions[0]
        assert (state.leader, state.isr) == (2, (2, 3))
        with producing(kafka, acks="all") as producer:
            assert settle(producer, send(producer, TOPIC, b"after")) == [None]
        kafka.resume(1)
        assert kafka.controller.topics[TOPIC].partitions[0].isr == (1, 2, 3)
        assert kafka.brokers[1].partitions[TOPIC, 0].log.end_offset == 2


def test_a_follower_that_was_out_of_sync_takes_each_record_once(caplog: pytest.LogCaptureFixture) -> None:
    """The answer to its last fetch and the news that it is out of sync reach it together, and each begins a fetch."""
    settings = {"replica.lag.time.max.ms": 3000}
    with broker.Cluster(brokers=3, clock="held", settings=settings) as kafka, producing(kafka, acks=1) as producer:
        kafka.create_topic(TOPIC)
        assert settle(producer, send(producer, TOPIC, b"0")) == [None]  # it knows the cluster now
        kafka.clock.advance(1)
        with kafka.paused(3):
            for number in range(1, 20):
                assert settle(producer, send(producer, TOPIC, b"%d" % number)) == [None]
                kafka.clock.advance(0.5)
            assert kafka.in_sync(TOPIC) == (1, 2)
        kafka.clock.advance(1)
        assert kafka.in_sync(TOPIC) == (1, 2, 3)
        logs = [one.partitions[TOPIC, 0].log for one in kafka.brokers.values()]
        assert len(kafka._on_loop(lambda: {log.read(0, 1 << 20, 20, min_one=True) for log in logs})) == 1
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_leader_that_appended_nothing_follows_again() -> None:
    """Its log ends with an epoch that the next leader never saw: the follower forgets it, and asks no more."""
    with broker.Cluster(brokers=2, clock="held") as kafka, producing(kafka, acks="all") as producer:
        kafka.create_topic(TOPIC, replicas=2)
        assert settle(producer, send(producer, TOPIC, b"first")) == [None]
        with kafka.paused(1):
            kafka.clock.advance(20)  # its session ends: broker 2 leads, in an epoch in which nothing is appended
            assert kafka.leader(TOPIC) == 2
        kafka.clock.advance(1)
        assert kafka.in_sync(TOPIC) == (1, 2)
        log = kafka.brokers[2].partitions[TOPIC, 0].log
        kafka._on_loop(lambda: kafka.controller.leaders.elect_preferred(kafka.controller.topics[TOPIC].partitions[0]))
        kafka.clock.advance(1)
        assert kafka.leader(TOPIC) == 1
        assert settle(producer, send(producer, TOPIC, b"second")) == [None]
        assert [entry for entry in log.epochs.entries() if entry[1] >= log.end_offset] == []
