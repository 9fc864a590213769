"""confluent-kafka's ShareConsumer, a preview, unmodified in share groups of ours: real time and held time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from abeyant.broker import Cluster

TOPIC = "work"


@pytest.fixture(params=["real", "held"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    clock: Literal["real", "held"] = request.param
    with Cluster(3, clock=clock) as cluster:
        cluster.create_topic(TOPIC)
        cluster._settled(cluster.controller.groups.change, "group", {"share.auto.offset.reset": "earliest"})
        yield cluster


@contextmanager
def member(kafka: Cluster, mode: str = "explicit") -> Iterator[ShareConsumer]:
    consumer = ShareConsumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "group", "share.acknowledgement.mode": mode, "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def polled(consumer: ShareConsumer, count: int = 1) -> list[Any]:
    found: list[Any] = []
    patience = time.monotonic() + 30
    while len(found) < count and time.monotonic() < patience:
        found += consumer.poll(0.5)
    assert [one.error() for one in found] == [None] * count
    return found


def test_records_are_accepted_released_and_rejected(kafka: Cluster) -> None:
    with member(kafka) as consumer:
        kafka.seed(TOPIC, [b"accept", b"release", b"reject"])
        for one in polled(consumer, 3):
            consumer.acknowledge(one, AcknowledgeType[one.value().decode().upper()])
        assert list(consumer.commit_sync(30.0).values()) == [None]
        [again] = polled(consumer)
        assert (again.value(), again.delivery_count()) == (b"release", 2)
        consumer.acknowledge(again)
        consumer.commit_sync(30.0)
        assert kafka.waiting("ShareLock") == []


def test_a_lock_that_ends_gives_the_record_to_another(kafka: Cluster) -> None:
    kafka.seed(TOPIC, [b"tea"])
    with member(kafka) as one:
        polled(one)
        [lock] = kafka.waiting("ShareLock")
        with member(kafka, "implicit") as other:
            if kafka.clock.held:
                kafka.clock.advance(lock.deadline - lock.since)
            else:
                kafka.expire_lock("group", TOPIC)
            [again] = polled(other)
            assert again.delivery_count() == 2
            other.commit_sync(30.0)
