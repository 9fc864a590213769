"""Replication throttles in held time: how long replicas wait, who waits, and who does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from abeyant.broker import Cluster
from broker.clients import producing, send, settle
from broker.conformance.bodies import reassign
from broker.conformance.client import Connection
from broker.conformance.scenario import Topic
from broker.conformance.scenarios.configs import BROKER, DELETE, SET, TOPIC, stepwise
from waiting import wait_until

NAME = "orders"
RATE = 100_000  # bytes per second
PART = 100_000  # bytes that a follower fetches at once
RECORDS = 30  # each of PART bytes
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


def ask(kafka: Cluster, api: str, version: int, body: dict[str, Any], broker: int = 1) -> dict[str, Any]:
    host, _, port = kafka.bootstrap.split(",")[broker - 1].rpartition(":")
    with Connection(host, int(port)) as client:
        return client.ask(api, version, body)


def alter(kafka: Cluster, kind: int, name: str, *steps: tuple[int, str, str | None]) -> None:
    broker = int(name) if kind == BROKER else 1
    [row] = ask(kafka, "IncrementalAlterConfigs", 1, stepwise(kind, name, *steps), broker)["responses"]
    assert row["error_code"] == "NONE", row


def throttle(kafka: Cluster, side: str, replicas: str = "*") -> None:
    alter(kafka, TOPIC, NAME, (SET, f"{side}.replicas", replicas))
    alter(kafka, BROKER, "1" if side == LEADER else "2", (SET, f"{side}.rate", str(RATE)))


def filled(brokers: int = 2) -> Cluster:
    return Cluster(brokers=brokers, clock="held", settings={"replica.fetch.max.bytes": PART})


@contextmanager
def catching_up(side: str) -> Iterator[Cluster]:
    """A leader with records, and a new replica of it on the other broker, with a throttle at one side."""
    with filled() as kafka:
        kafka.create_topic(NAME, replicas=1)
        assert kafka.leader(NAME) == 1
        for _ in range(RECORDS):
            kafka.seed(NAME, [bytes(PART)])
        throttle(kafka, side)
        said = ask(kafka, "AlterPartitionReassignments", 1, reassign(Topic(NAME, ""), [1, 2]))
        assert said["error_code"] == "NONE"
        yield kafka


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_a_new_replica_catches_up_at_the_rate(side: str) -> None:
    """3 MB at 100 kB a second: the first second of the windows is a burst, as in Kafka; the rest takes its time."""
    with catching_up(side) as kafka:
        [waiting] = kafka.until_waiting("Throttle")
        assert waiting.keys == ((NAME, 0),)
        assert waiting.held_by == "throttle"
        assert waiting.broker == (1 if side == LEADER else 2)
        seconds = 0
        while 2 not in kafka.in_sync(NAME):
            assert kafka.until_waiting("Throttle"), "it goes on by itself"
            kafka.clock.advance(1.0)
            seconds += 1
            assert seconds < 60
        total = RECORDS * PART
        # The rate is that of 11 windows, of which at least ten count: so ten seconds' worth come at once.
        assert total / RATE - 11 <= seconds <= total / RATE + 2


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_the_end_of_a_throttle_lets_replicas_go_on(side: str) -> None:
    with catching_up(side) as kafka:
        kafka.until_waiting("Throttle")
        assert kafka.in_sync(NAME) == (1,)
        alter(kafka, TOPIC, NAME, (DELETE, f"{side}.replicas", None))
        wait_until(lambda: kafka.in_sync(NAME) == (1, 2))
        assert kafka.waiting("Throttle") == []


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_a_faster_rate_holds_at_once(side: str) -> None:
    with catching_up(side) as kafka:
        kafka.until_waiting("Throttle")
        alter(kafka, BROKER, "1" if side == LEADER else "2", (SET, f"{side}.rate", "1000000000"))
        wait_until(lambda: kafka.in_sync(NAME) == (1, 2))


def test_replicas_in_sync_are_not_held_back() -> None:
    """Their bytes count, but acks=all does not wait for a throttle."""
    with filled() as kafka:
        kafka.create_topic(NAME, replicas=2)
        for side in (LEADER, FOLLOWER):
            throttle(kafka, side)
        with producing(kafka) as producer:
            for _ in range(RECORDS):
                assert settle(producer, send(producer, NAME, bytes(PART))) == [None]
        assert kafka.in_sync(NAME) == (1, 2)
        assert kafka.waiting("Throttle") == []


def test_a_replica_that_is_held_back_goes_on_with_the_next_leader() -> None:
    with filled(brokers=3) as kafka:
        kafka.create_topic(NAME, replicas=2)
        for _ in range(RECORDS):
            kafka.seed(NAME, [bytes(PART)])
        alter(kafka, TOPIC, NAME, (SET, f"{FOLLOWER}.replicas", "0:3"))
        alter(kafka, BROKER, "3", (SET, f"{FOLLOWER}.rate", str(RATE)))
        said = ask(kafka, "AlterPartitionReassignments", 1, reassign(Topic(NAME, ""), [1, 2, 3]))
        assert said["error_code"] == "NONE"
        kafka.until_waiting("Throttle")
        kafka.stop(1)
        assert kafka.leader(NAME) == 2
        for _ in range(60):
            kafka.clock.advance(1.0)
            if 3 in kafka.in_sync(NAME):
                break
        assert 3 in kafka.in_sync(NAME)
