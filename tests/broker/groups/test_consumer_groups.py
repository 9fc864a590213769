"""Groups of the new protocol (KIP-848) over sockets: a heartbeat says all and brings all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from abeyant.broker import Cluster
from broker.groups.members import Confluent
from broker.groups.wire import SECOND, GroupClient, coordinator
from waiting import wait_until

TOPIC = "t"


@contextmanager
def held(brokers: int = 1, **more: Any) -> Iterator[Cluster]:
    with Cluster(brokers, clock="held", **more) as kafka:
        kafka.create_topic(TOPIC, partitions=4)
        yield kafka


class Consumer:
    """A member as a client has it: its epoch, and what it believes to have. It gives back what it is not to have."""

    def __init__(self, client: GroupClient, name: str, **first: Any) -> None:
        self.client = client
        self.name = name
        self.epoch = 0
        self.has: frozenset[tuple[Any, int]] = frozenset()
        self.first = {"subscribed_topic_names": [TOPIC], **first}
        self.said: Any = None
        self.whole = True  # whether to tell everything: at first, and whenever an answer was lost

    def beat(self, **more: Any) -> str:
        """A heartbeat; the error's name."""
        values: dict[str, Any] = {"rebalance_timeout": 60 * SECOND, **(self.first if self.whole else {})}
        self.said = self.client.ask(
            "ConsumerGroupHeartbeat", member_id=self.name, member_epoch=self.epoch,
            topic_partitions=rows(self.has), **{**values, **more},
        )  # fmt: skip
        if self.said.error_code.name == "none":
            self.epoch, self.whole = self.said.member_epoch, False
            if self.said.assignment is not None:
                self.has = frozenset(
                    (row.topic_id, index) for row in self.said.assignment.topic_partitions for index in row.partitions
                )
        return str(self.said.error_code.name)

    def begin_anew(self) -> None:
        """Join again, as when it was put out."""
        self.epoch, self.has, self.whole = 0, frozenset(), True

    def leave(self, epoch: int = -1, **more: Any) -> str:
        """Leave for good, or with -2 for a while."""
        self.said = self.client.ask(
            "ConsumerGroupHeartbeat", member_id=self.name, member_epoch=epoch, topic_partitions=None, **more
        )
        self.begin_anew()
        return str(self.said.error_code.name)

    @property
    def indexes(self) -> list[int]:
        return sorted(index for _, index in self.has)


def rows(partitions: frozenset[tuple[Any, int]]) -> list[dict[str, Any]]:
    return [{"topic_id": topic, "partitions": [index]} for topic, index in sorted(partitions)]


def described(client: GroupClient) -> Any:
    (group,) = client.ask("ConsumerGroupDescribe", group_ids=[client.group]).groups
    return group


def test_what_one_gives_back_another_gets() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        one, two = Consumer(client, "one"), Consumer(client, "two")
        assert one.beat() == two.beat() == "none"
        assert (one.indexes, two.indexes) == ([0, 1, 2, 3], [])
        assert (one.epoch, two.epoch) == (2, 3)
        assert described(client).group_state == "Reconciling"
        one.beat()  # it is told what to give back, and has to say that it has
        assert one.indexes == [0, 1]
        (waiting,) = kafka.waiting("Rebalance")
        assert waiting.keys == (("group", "one"),)
        two.beat()
        assert (one.epoch, two.indexes) == (2, [])
        one.beat()
        two.beat()
        assert (one.epoch, two.indexes) == (3, [2, 3])
        found = described(client)
        assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name) == (
            "Stable", 3, 3, "uniform",
        )  # fmt: skip
        assert not kafka.waiting("Rebalance")
        assert two.leave() == "none"
        one.beat()
        assert one.indexes == [0, 1, 2, 3]


def test_a_silent_member_is_out_after_its_session_and_one_that_keeps_what_it_should_not_after_its_rebalance() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        one, two = Consumer(client, "one"), Consumer(client, "two")
        one.beat()
        kafka.clock.advance(44.9)
        assert [waiting.keys for waiting in kafka.waiting("Heartbeat")] == [(("group", "one"),)]
        kafka.clock.advance(0.11)
        assert one.beat() == "unknown_member_id"
        one.begin_anew()
        one.beat()
        two.beat()
        keeps = one.has
        for _ in range(3):
            one.beat()
            one.has = keeps
            kafka.clock.advance(29.0)
            assert two.beat() == "none"
        assert one.beat() == "unknown_member_id"
        two.beat()
        assert two.indexes == [0, 1, 2, 3]


def test_epochs_that_cannot_be_are_fenced() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        one = Consumer(client, "one")
        one.beat()
        one.epoch = 7
        assert one.beat() == "fenced_member_epoch"
        assert "larger member epoch (7)" in one.said.error_message
        stranger = Consumer(client, "stranger")
        stranger.epoch = 1
        assert stranger.beat() == stranger.leave() == "unknown_member_id"
        one.begin_anew()
        assert one.beat() == "none"  # whoever joins again begins anew
        assert one.indexes == [0, 1, 2, 3]
        for wrong in (
            {"member_epoch": -3}, {"member_id": ""}, {"subscribed_topic_names": None, "subscribed_topic_regex": None},
            {"topic_partitions": None}, {"rebalance_timeout": -SECOND / 1000}, {"instance_id": ""},
        ):  # fmt: skip
            right: dict[str, Any] = {"member_id": "two", "member_epoch": 0, "subscribed_topic_names": [TOPIC]}
            right |= {"rebalance_timeout": SECOND, "topic_partitions": []}
            said = client.ask("ConsumerGroupHeartbeat", **{**right, **wrong})
            assert said.error_code.name == "invalid_request", wrong
        assert Consumer(client, "two", server_assignor="mine").beat() == "unsupported_assignor"
        for regex in ("(", "(?!internal).*"):  # the second is one for Python and not for Kafka
            assert Consumer(client, "two", subscribed_topic_regex=regex).beat() == "invalid_regular_expression"


def test_a_static_member_that_leaves_for_a_while_finds_what_it_had() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        other = Consumer(client, "other")
        static = Consumer(client, "first", instance_id="pod")
        other.beat()
        static.beat()
        for _ in range(2):
            other.beat()
            static.beat(instance_id="pod")
        had = static.has
        assert len(had) == 2
        again = Consumer(client, "second", instance_id="pod")
        assert again.beat() == "unreleased_instance_id"
        assert static.leave(-2, instance_id="pod") == "none"
        other.beat()
        assert len(other.has) == 2
        assert again.beat() == "none"
        assert again.has == had
        static.epoch = 3
        assert static.beat(instance_id="pod") == "fenced_instance_id"


def test_more_partitions_and_more_topics_are_shared_as_they_come() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        one = Consumer(client, "one", subscribed_topic_regex="orders-.*", server_assignor="range")
        one.beat()
        assert one.indexes == [0, 1, 2, 3]
        kafka.create_topic("orders-1", partitions=2)
        kafka.create_topic("other")
        one.beat()
        assert one.indexes == [0, 0, 1, 1, 2, 3]
        kafka.delete_topic("orders-1")
        for _ in range(3):
            one.beat()
        assert one.indexes == [0, 1, 2, 3]
        assert described(client).assignor_name == "range"


@pytest.mark.parametrize("kept", [True, False])
def test_k1_a_coordinator_that_moves_takes_all_with_it(kept: bool, tmp_path: Any) -> None:
    with held(3, data=tmp_path if kept else None) as kafka:
        first = coordinator(kafka, "group")
        with GroupClient(kafka) as client:
            one, two = Consumer(client, "one"), Consumer(client, "two", instance_id="pod", rack_id="rack")
            one.beat()
            two.beat()
            one.beat()
            before = described(client)
        kafka.stop(first)
        with GroupClient(kafka) as client:
            assert described(client) == before
            one.client = two.client = client
            one.beat()
            two.beat(instance_id="pod")
            assert (one.indexes, two.indexes) == ([0, 1], [2, 3])
            kafka.clock.advance(45.1)
            assert described(client).group_state == "Empty"


def test_a_group_changes_its_protocol_while_it_is_empty() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        joined = client.join()
        client.sync(joined, b"all")
        client.commit(17, joined)
        one = Consumer(client, "one")
        client.ask("LeaveGroup", members=[{"member_id": joined.member_id}])
        assert one.beat() == "none"
        assert client.fetch() == 17
        assert client.describe().error_message == "Group group is not a classic group."
        assert [(group.group_type, group.group_state) for group in client.ask("ListGroups").groups] == [
            ("consumer", "Stable")
        ]
        one.leave()
        assert client.join().error_code.name == "none"
        assert described(client).error_code.name == "group_id_not_found"
        assert client.fetch() == 17


def test_offsets_stay_when_the_protocol_changes_and_the_coordinator_moves() -> None:
    with held(3) as kafka:
        first = coordinator(kafka, "group")
        with GroupClient(kafka) as client:
            client.commit(17)
            one = Consumer(client, "one")
            one.beat()
            one.leave()
            client.join()  # it is given an id, joins, and is not written down before it syncs
        kafka.stop(first)
        with GroupClient(kafka) as client:
            assert client.fetch() == 17
            (group,) = client.ask("ListGroups").groups
            assert (group.group_type, group.group_state) == ("classic", "Empty")
            assert client.ask("DeleteGroups", groups_names=["group"]).results[0].error_code.name == "none"
            assert client.fetch() == -1


def test_members_commit_in_their_epoch() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        one = Consumer(client, "one")
        one.beat()

        def commit(member: str, epoch: int, version: int = 9) -> str:
            partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": None}
            said = client.ask(
                "OffsetCommit", version, member_id=member, generation_id_or_member_epoch=epoch,
                topics=[{"name": TOPIC, "partitions": [partition]}],
            )  # fmt: skip
            return str(said.topics[0].partitions[0].error_code.name)

        assert commit("one", 2) == "none"
        assert commit("one", 1) == "stale_member_epoch"
        assert commit("two", 1) == commit("", -1) == "unknown_member_id"
        assert commit("one", 2, version=8) == "unsupported_version"
        (group,) = client.ask(
            "OffsetFetch", 9, groups=[{"group_id": "group", "member_id": "one", "member_epoch": 3, "topics": None}]
        ).groups
        assert group.error_code.name == "stale_member_epoch"
        (deleted,) = client.ask("DeleteGroups", groups_names=["group"]).results
        assert deleted.error_code.name == "non_empty_group"
        kafka.expire_member("group", "one")
        (deleted,) = client.ask("DeleteGroups", groups_names=["group"]).results
        assert deleted.error_code.name == "none"
        assert client.ask("ListGroups").groups == ()


@pytest.mark.parametrize("first", [{}, {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}])
def test_offsets_are_kept_for_a_subscription_and_forgotten_after_it(first: dict[str, Any]) -> None:
    settings = {"offsets.retention.minutes": 60, "connections.max.idle.ms": 86_400_000}
    with held(settings=settings) as kafka, GroupClient(kafka) as client:
        assert client.commit(7) == "none"
        one = Consumer(client, "one", **first)
        for _ in range(125):
            assert one.beat() == "none"
            kafka.clock.advance(40.0)
        assert client.fetch() == 7
        assert one.leave() == "none"
        kafka.clock.advance(610.0)  # it is looked each 10 minutes
        assert client.fetch() == -1


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_had_by_two_and_in_the_end_all_is_had(seed: int) -> None:
    """Members come, go, are silent and lose answers; a client has a partition until it says that it has not."""
    choose = random.Random(seed)
    with held() as kafka, GroupClient(kafka) as client:
        members: list[Consumer] = []
        for step in range(60):
            action = choose.random()
            if action < 0.2 and len(members) < 5:
                members.append(Consumer(client, f"member-{step}"))
            elif action < 0.3 and members:
                members.remove(gone := choose.choice(members))
                gone.leave()
            elif action < 0.4 and members:
                lost = choose.choice(members)
                before = lost.epoch, lost.has
                if lost.beat() == "none" and lost.epoch:
                    (lost.epoch, lost.has), lost.whole = before, True  # the answer was lost
            elif action < 0.5:
                kafka.clock.advance(choose.choice([1.0, 20.0]))
            elif members:
                member = choose.choice(members)
                if member.beat() != "none":
                    member.begin_anew()
            alive = [waiting.keys[0][1] for waiting in kafka.waiting("Heartbeat")]
            had = [partition for member in members if member.name in alive for partition in member.has]
            assert len(had) == len(set(had)), "two have the same"
        members.append(Consumer(client, "last"))
        for _ in range(10):
            for member in members:
                if member.beat() != "none":
                    member.begin_anew()
        assert sorted(index for member in members for index in member.indexes) == [0, 1, 2, 3]
        assert described(client).group_state == "Stable"


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_confluent_kafka(assignor: str) -> None:
    settings = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.min.heartbeat.interval.ms": 100}
    with Cluster(3, settings=settings) as kafka:
        kafka.create_topic(TOPIC, partitions=6)
        config: dict[str, Any] = {"group_protocol": "consumer", "group_remote_assignor": assignor, "session": None}
        with Confluent(kafka.bootstrap, TOPIC, **config) as one:
            wait_until(lambda: len(one.partitions) == 6)
            with Confluent(kafka.bootstrap, TOPIC, **config) as two:
                wait_until(lambda: len(one.partitions) == len(two.partitions) == 3)
                assert not one.partitions & two.partitions
                assert one.revoked == [two.partitions]
            wait_until(lambda: len(one.partitions) == 6)


def test_a_target_is_kept_for_the_assignment_interval() -> None:
    """The next heartbeat after it brings the new one (KIP-1263)."""
    with held(settings={"group.consumer.assignment.interval.ms": 5000}) as kafka, GroupClient(kafka) as client:
        one, two = Consumer(client, "one"), Consumer(client, "two")
        assert [one.beat(), one.indexes] == ["none", [0, 1, 2, 3]], "the first comes at once"
        assert [two.beat(), two.indexes] == ["none", []]
        assert described(client).group_state == "Assigning"
        kafka.clock.advance(4.9)
        assert [one.beat(), one.indexes, two.beat(), two.indexes] == ["none", [0, 1, 2, 3], "none", []]
        kafka.clock.advance(0.2)
        assert two.beat() == "none"
        for _ in range(2):
            assert [one.beat(), one.beat(), two.beat()] == ["none"] * 3
        assert (len(one.indexes), len(two.indexes)) == (2, 2)
