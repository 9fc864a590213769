"""What brokers do by themselves is done at Kafka's times: expired records, silent producers, followers that lag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.broker import Cluster
from abeyant.broker.clock import until_scan
from broker.clients import producing, send, settle

TOPIC = "orders"
EXPIRED_SOON = {"retention.ms": 1000, "segment.ms": 1000}


@pytest.mark.parametrize(
    ("policy", "cleaner", "gone_after"),
    [
        ("compact,delete", True, 14.0),  # log.cleaner.backoff.ms, 15 s from the start: the cleaner deletes too
        ("compact,delete", False, None),  # and nobody else does, as in Kafka
        ("delete", True, 299.0),  # log.retention.check.interval.ms, 300 s, first after 30 s
        ("delete", False, 299.0),
        ("compact", True, None),
    ],
)
def test_expired_records_go_when_kafka_deletes_them(policy: str, cleaner: bool, gone_after: float | None) -> None:
    with Cluster(clock="held", settings={"log.cleaner.enable": cleaner}) as kafka, producing(kafka) as producer:
        kafka.create_topic(TOPIC, config={"cleanup.policy": policy, **EXPIRED_SOON})
        kafka.clock.advance(31.0)
        assert settle(producer, send(producer, TOPIC, b"tea", key=b"k")) == [None]
        log = kafka.brokers[1].partitions[TOPIC, 0].log
        if gone_after is None:
            kafka.clock.advance(601.0)
            assert log.start_offset == 0
            return
        kafka.clock.advance(gone_after - 1.0)
        assert log.start_offset == 0
        kafka.clock.advance(1.0)
        assert log.start_offset == 1


def test_a_silent_producer_is_forgotten_by_the_check_of_its_log() -> None:
    """Every 600 s from when the log was opened, and not from the broker's start."""
    settings = {"producer.id.expiration.ms": 1000}
    with (
        Cluster(clock="held", settings=settings) as kafka,
        producing(kafka, enable_idempotence=True, retries=1) as producer,
    ):
        kafka.clock.advance(100.0)
        kafka.create_topic(TOPIC)
        assert settle(producer, send(producer, TOPIC, b"tea")) == [None]
        log = kafka.brokers[1].partitions[TOPIC, 0].log
        kafka.clock.advance(599.0)
        assert len(log.producers.states()) == 1
        kafka.clock.advance(1.0)
        assert log.producers.states() == []
        kafka.delete_topic(TOPIC)
        assert not [key for key in kafka.brokers[1].housekeeping._tasks if not isinstance(key, str)]


def test_a_follower_that_lags_leaves_the_in_sync_set_at_the_next_scan() -> None:
    """Every half `replica.lag.time.max.ms` from the start, as Kafka: here after 15, 30 and 45 s."""
    settings = {"broker.session.timeout.ms": 120_000}
    with Cluster(brokers=2, clock="held", settings=settings) as kafka, producing(kafka, acks=1) as producer:
        kafka.create_topic(TOPIC)
        assert settle(producer, send(producer, TOPIC, b"first")) == [None]
        kafka.clock.advance(10.0)
        with kafka.paused(2):
            assert settle(producer, send(producer, TOPIC, b"second")) == [None]
            kafka.clock.advance(34.9)
            assert kafka.in_sync(TOPIC) == (1, 2)  # for 30 s it has lagged
            kafka.clock.advance(0.2)
            assert kafka.in_sync(TOPIC) == (1,)


NUMBERS = st.integers(min_value=0, max_value=10**13)


@given(NUMBERS, st.integers(min_value=1, max_value=10**9), NUMBERS, NUMBERS)
def test_a_scan_is_the_first_of_its_row_after_what_is_due(started: int, interval: int, due: int, later: int) -> None:
    now = started + later
    scan = now + round(until_scan(started, interval, due, now) * 1000)
    assert scan > max(now, due)
    assert scan - interval <= max(now, due)
    assert (scan - started) % interval == 0


@pytest.mark.parametrize("paused", [False, True])
def test_the_cleaner_starts_anew_where_its_settings_change(paused: bool) -> None:
    with Cluster(clock="held") as kafka, producing(kafka) as producer:
        kafka.create_topic(TOPIC, config={"cleanup.policy": "compact,delete", **EXPIRED_SOON})
        kafka.clock.advance(16.0)
        assert settle(producer, send(producer, TOPIC, b"tea", key=b"k")) == [None]
        log = kafka.brokers[1].partitions[TOPIC, 0].log
        changed = {"min.insync.replicas": "1", "log.cleaner.backoff.ms": "2000"}
        if paused:
            kafka.pause(1)
        kafka._settled(kafka.controller.configure_brokers, None, changed)
        if paused:
            kafka.clock.advance(15.0)  # a turn of before comes due, and waits behind the change
            kafka.resume(1)
        turns = []
        compact = log.compact

        def turn(now_ms: int, up_to: int, *, force: bool = False) -> int:
            turns.append(kafka.clock.now())
            return compact(now_ms, up_to, force=force)

        log.compact = turn  # type: ignore[method-assign]
        kafka.clock.advance(2.0)
        assert log.start_offset == 1
        kafka.clock.advance(16.0)
        assert [at - turns[0] for at in turns] == [float(at) for at in range(0, 19, 2)]
