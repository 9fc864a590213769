"""Unmodified clients in groups: they share the partitions, take over from one another, and go on where others were."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from abeyant.broker import Cluster
from broker.clients import PATIENCE, take
from broker.groups.members import ALL, TOPIC, Aiokafka, Confluent, KafkaPython, fill, share
from waiting import wait_until

TESTS = Path(__file__).parents[2]


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        cluster.create_topic(TOPIC, partitions=len(ALL))
        yield cluster


def test_three_kinds_of_clients_in_one_group(kafka: Cluster) -> None:
    written = fill(kafka, 5)
    one = Confluent(kafka.bootstrap, TOPIC, partition_assignment_strategy="range")
    two, three = KafkaPython(kafka.bootstrap, TOPIC), Aiokafka(kafka.bootstrap, TOPIC)
    with one:
        wait_until(lambda: share(one))
        with two:
            wait_until(lambda: share(one, two))
            with three:
                wait_until(lambda: share(one, two, three))
                written = fill(kafka, 5)
                wait_until(lambda: {*one.read, *two.read, *three.read} == written)
                assert {len(member.partitions) for member in (one, two, three)} == {2}
            wait_until(lambda: share(one, two))  # one leaves, and says so
        wait_until(lambda: share(one))


def test_a_member_that_is_killed_stays_until_its_session_ends() -> None:
    with Cluster(1, settings={"group.min.session.timeout.ms": 500}) as kafka:
        kafka.create_topic(TOPIC, partitions=len(ALL))
        with Confluent(kafka.bootstrap, TOPIC, session=1_000) as one:
            wait_until(lambda: share(one))
            other = subprocess.Popen(
                [sys.executable, "-m", "broker.groups.members", kafka.bootstrap, "group", TOPIC, "1500"],
                cwd=TESTS, env={"PYTHONPATH": str(TESTS)},
            )  # fmt: skip
            try:
                wait_until(lambda: len(one.partitions) == 3)
                mine = {
                    waiting.keys for waiting in kafka.waiting("Heartbeat") if waiting.deadline - waiting.since < 1.2
                }
            finally:
                other.send_signal(signal.SIGKILL)
                other.wait()
            (theirs,) = (waiting for waiting in kafka.waiting("Heartbeat") if waiting.keys not in mine)
            while theirs.keys in {waiting.keys for waiting in kafka.waiting("Heartbeat")}:
                known = [waiting for waiting in kafka.waiting("Heartbeat") if waiting.keys == theirs.keys]
                theirs = known[0] if known else theirs
            assert kafka.clock.now() >= theirs.deadline, "not before the end of its session"
            wait_until(lambda: share(one))


def test_a_static_member_that_comes_back_in_time_causes_no_rebalance(kafka: Cluster) -> None:
    with Confluent(kafka.bootstrap, TOPIC) as one:
        wait_until(lambda: share(one))
        with Confluent(kafka.bootstrap, TOPIC, group_instance_id="pod-1") as static:
            wait_until(lambda: share(one, static))
            had, assigned = static.partitions, len(one.assigned)
        with Confluent(kafka.bootstrap, TOPIC, group_instance_id="pod-1") as static:
            wait_until(lambda: static.partitions == had)
            assert len(one.assigned) == assigned
            assert share(one, static)


def test_cooperative_members_give_away_only_what_others_get(kafka: Cluster) -> None:
    with Confluent(kafka.bootstrap, TOPIC, partition_assignment_strategy="cooperative-sticky") as one:
        wait_until(lambda: share(one))
        with Confluent(kafka.bootstrap, TOPIC, partition_assignment_strategy="cooperative-sticky") as two:
            wait_until(lambda: share(one, two))
            assert one.revoked == [two.partitions]
            assert one.assigned[0] == ALL
            assert not frozenset().union(*one.assigned[1:])


def test_who_comes_next_goes_on_where_the_last_one_was(kafka: Cluster) -> None:
    from confluent_kafka import Consumer

    written = fill(kafka, 4)
    settings = {
        "bootstrap.servers": kafka.bootstrap, "group.id": "group", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "log_level": 0,
    }  # fmt: skip
    read = set()
    for _ in range(2):
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        for message in take(consumer, len(written) // 2):
            read.add((message.partition(), message.offset()))
            consumer.commit(message=message, asynchronous=False)
        consumer.close()
    assert read == written


def test_a_group_is_described_reset_and_deleted(kafka: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    with Confluent(kafka.bootstrap, TOPIC) as one:
        wait_until(lambda: share(one))
        described = admin.describe_consumer_groups(["group"])["group"].result(PATIENCE)
        assert described.state.name == "STABLE"
        (member,) = described.members
        assert {place.partition for place in member.assignment.topic_partitions} == ALL
        listed = admin.list_consumer_groups().result(PATIENCE)
        assert [found.group_id for found in listed.valid] == ["group"]
        with pytest.raises(Exception, match=r"NON_EMPTY_GROUP|not empty"):
            admin.delete_consumer_groups(["group"])["group"].result(PATIENCE)
    places = [TopicPartition(TOPIC, 0, 3)]
    reset = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("group", places)])
    assert [place.error for place in reset["group"].result(PATIENCE).topic_partitions] == [None]
    asked = [ConsumerGroupTopicPartitions("group", [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)])]
    found = admin.list_consumer_group_offsets(asked)["group"].result(PATIENCE).topic_partitions
    assert [place.offset for place in found] == [3, -1001]
    admin.delete_consumer_groups(["group"])["group"].result(PATIENCE)
    assert not admin.list_consumer_groups().result(PATIENCE).valid
