"""Groups that change their protocol while members are there: what each is told, what it has time for, and clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Producer

from abeyant.broker import Cluster
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer import records as consumer_records
from abeyant.broker.groups.consumer.group import Classic, ConsumerMember
from broker.groups.members import Aiokafka, Confluent, Journal
from broker.groups.mixed_desk import MixedDesk, New, Old, settle
from broker.groups.test_consumer_groups import Consumer, described, held
from broker.groups.wire import GroupClient, coordinator
from waiting import wait_until

TOPIC = "t"
NEW: dict[str, Any] = {"group_protocol": "consumer", "session": None}
OLD: dict[str, Any] = {"partition_assignment_strategy": "range"}


def mixed(desk: MixedDesk) -> tuple[Old, New]:
    """One of each protocol that have half each."""
    old, new = Old(desk, "old", eager=True), New(desk, "new")
    for member in (old, old, new, old, new):
        member.beat()
        settle([old, new])
    assert len(old.has) == len(new.has) == 2
    assert desk.kind == "consumer"
    return old, new


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades", "joins"),
    [
        ("disabled", False, False, False),
        ("upgrade", True, False, True),
        ("downgrade", False, True, True),
        ("BIDIRECTIONAL", True, True, True),
    ],
)
def test_the_policy_says_what_may_be(policy: str, upgrades: bool, downgrades: bool, joins: bool) -> None:
    settings: dict[str, object] = {"group.consumer.migration.policy": policy}
    desk = MixedDesk(settings)
    old, new = Old(desk, "old", eager=True), New(desk, "new")
    old.beat()
    settle([old])
    new.beat()
    assert (desk.kind == "consumer") is upgrades
    assert [error.name for error in new.errors] == ([] if upgrades else ["group_id_not_found"])
    desk = MixedDesk(settings)
    new, old = New(desk, "new"), Old(desk, "old", eager=True)
    new.beat()
    old.beat()
    settle([old])
    assert [error.name for error in old.errors] == ([] if joins else ["inconsistent_group_protocol"])
    new.leave()
    assert desk.kind == ("classic" if downgrades and joins else "consumer")
    for _ in range(3):
        old.beat()
        settle([old])
    assert old.has == desk.all


@pytest.mark.parametrize("setting", ["group.consumer.max.size", "group.max.size"])
def test_a_group_that_would_be_too_large_keeps_its_protocol(setting: str) -> None:
    desk = MixedDesk({setting: 2})
    members: list[Old | New] = [Old(desk, f"old-{place}", eager=True) for place in range(2)]
    for member in [*members, *members]:
        member.beat()
        settle(members)
    new = New(desk, "new")
    new.beat()
    if setting == "group.max.size":
        third = Old(desk, "third", eager=True)
        third.beat()
        settle([*members, third])
        assert len(desk.members) == 4
        new.leave()
        assert desk.kind == "consumer"
    else:
        assert [error.name for error in new.errors] == ["group_max_size_reached"]
        assert desk.kind == "classic"


@pytest.mark.parametrize("joins", [False, True])
def test_who_is_to_join_again_or_to_sync_and_does_not_is_out_after_its_rebalance_time_out(joins: bool) -> None:
    desk = MixedDesk()
    old, new = mixed(desk)
    other = New(desk, "other")
    other.beat()

    def alive() -> str:
        try:
            desk.heartbeat(old.id, old.generation)
        except ApiError as error:
            return error.code.name
        return "none"

    assert alive() == "rebalance_in_progress"
    if joins:
        old.beat()
        assert old.joins is not None
        old.generation = old.joins[0].generation
    for _ in range(3):
        assert alive() == ("none" if joins else "rebalance_in_progress")
        new.beat()
        other.beat()
        desk.timer.advance(13.0)
    assert alive() != "unknown_member_id"
    new.beat()
    desk.timer.advance(1.1)
    assert alive() == "unknown_member_id"
    for _ in range(2):
        new.beat()
        other.beat()
    assert new.has | other.has == desk.all


def test_k5_each_member_has_the_session_of_its_own_protocol() -> None:
    desk = MixedDesk({"group.consumer.session.timeout.ms": 45_000})
    old, new = mixed(desk)
    desk.timer.advance(29.9)
    assert desk.members == {old.id, new.id}
    desk.timer.advance(0.2)
    assert desk.members == {new.id}
    new.beat()
    assert new.has == desk.all


@pytest.mark.parametrize("kept", [True, False])
def test_k1_a_coordinator_that_moves_takes_a_group_with_both_protocols_with_it(kept: bool, tmp_path: Any) -> None:
    with held(3, data=tmp_path if kept else None) as kafka:
        first = coordinator(kafka, "group")
        with GroupClient(kafka) as client:
            joined = client.join()
            client.sync(joined)
            one = Consumer(client, "one")
            assert one.beat() == "none"
            before = described(client)
        kafka.stop(first)
        with GroupClient(kafka) as client:
            assert described(client) == before
            assert client.heartbeat(joined) == "rebalance_in_progress"
            one.client = client
            assert one.leave() == "none"
            found = client.describe()
            assert (found.group_state, found.protocol_type) == ("PreparingRebalance", "consumer")
            again = client.join(joined.member_id)
            assert (again.leader, again.generation_id) == (joined.member_id, 3)


def test_records_say_what_kafka_s_own_say() -> None:
    """Bytes as Kafka 4.3.1's own classes write them."""
    member = ConsumerMember(
        "m", rack_id="r", client_id="c", client_host="/h", topics=("t",), regex="", rebalance_timeout=5,
        classic=Classic(7, (("range", b"\1\2"),)),
    )  # fmt: skip
    value = bytes.fromhex("00000002720263032f680202740100000005000100100100000007020672616e67650301020000")
    assert consumer_records.member("group", member)[1] == value
    assert consumer_records.read_member(value, ConsumerMember("m")) == member


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    settings = {"group.consumer.heartbeat.interval.ms": 50, "group.consumer.min.heartbeat.interval.ms": 50}
    with Cluster(3, settings=settings) as kafka:
        kafka.create_topic(TOPIC, partitions=6)
        yield kafka


def test_confluent_kafka_rolls_from_one_protocol_to_the_other_and_back(kafka: Cluster) -> None:
    """Each process is replaced in turn; at every step all partitions are had, each by one, and no record is lost."""
    journal = Journal()
    members: list[Confluent] = []
    stack = ExitStack()

    def begin(config: dict[str, Any]) -> None:
        member = Confluent(kafka.bootstrap, TOPIC, **config)
        member.journal = journal
        members.append(stack.enter_context(member))
        wait_until(lambda: all(len(one.partitions) == 6 // len(members) for one in members))

    def end(place: int) -> None:
        gone = members.pop(place)
        gone.__exit__(None, None, None)
        wait_until(lambda: all(len(one.partitions) == 6 // len(members) for one in members))

    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    with stack:
        begin(OLD)
        begin(OLD)
        seen = list(members)
        for config in (NEW, NEW, OLD, OLD):
            for partition in range(6):
                producer.produce(TOPIC, b"value", partition=partition)
            assert producer.flush(10) == 0
            begin(config)
            seen.append(members[-1])
            end(0)
        wait_until(lambda: len({record for one in seen for record in one.read}) == 24)
    assert journal.doubled == []


def test_aiokafka_goes_on_in_a_group_of_the_new_protocol(kafka: Cluster) -> None:
    with Aiokafka(kafka.bootstrap, TOPIC) as old:
        wait_until(lambda: len(old.partitions) == 6)
        with Confluent(kafka.bootstrap, TOPIC, **NEW) as new:
            wait_until(lambda: len(old.partitions) == len(new.partitions) == 3)
            assert not old.partitions & new.partitions
        wait_until(lambda: len(old.partitions) == 6)
