"""Groups over sockets: what is told to whom, what is kept, and by whom when the coordinator moves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker import Cluster
from abeyant.broker.coordinator.topics import OFFSETS
from broker.groups.wire import SECOND, GroupClient, coordinator, offsets_partition
from broker.wire import WireClient
from waiting import wait_until

AN_HOUR = {"offsets.retention.minutes": 60, "connections.max.idle.ms": 86_400_000}


@contextmanager
def held(brokers: int = 1, **more: Any) -> Iterator[Cluster]:
    with Cluster(brokers, clock="held", **more) as kafka:
        if "t" not in kafka.topics():
            kafka.create_topic("t", partitions=2)
        yield kafka


def test_k5_a_session_of_45_s_ends_at_once_where_the_clock_is_held() -> None:
    with held() as kafka, GroupClient(kafka) as one, GroupClient(kafka) as two:
        first = one.join()
        number = two.send_join()
        required = two.client.receive(11, 5, number)
        number = two.send_join(required.member_id)
        assert kafka.until_waiting("Rebalance")[0].keys == (("group", first.member_id),)
        first = one.join(first.member_id)
        second = two.client.receive(11, 5, number)
        assert first.generation_id == second.generation_id == 2
        one.sync(first, b"a", b"b")
        assert two.sync(second).assignment == b"b"
        sessions = kafka.waiting("Heartbeat")
        assert {waiting.keys for waiting in sessions} == {
            (("group", first.member_id),), (("group", second.member_id),),
        }  # fmt: skip
        assert {round(waiting.deadline - waiting.since, 3) for waiting in sessions} == {45.0}
        kafka.clock.advance(30.0)
        assert one.heartbeat(first) == "none"
        kafka.clock.advance(14.999)
        assert len(one.describe().members) == 2
        kafka.clock.advance(0.002)
        assert one.heartbeat(first) == "rebalance_in_progress"
        assert two.heartbeat(second) == "unknown_member_id"
        assert one.join(first.member_id).generation_id == 3


def test_what_was_committed_is_there_for_whoever_comes_next() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        joined = client.join()
        client.sync(joined, b"all")
        assert client.fetch() == -1
        assert client.commit(17, joined) == "none"
        assert client.commit(3, joined, partition=1) == "none"
        assert (client.fetch(), client.fetch(partition=1)) == (17, 3)
        everything = client.ask("OffsetFetch", 7, topics=None).topics
        assert [(topic.name, sorted(p.partition_index for p in topic.partitions)) for topic in everything] == [
            ("t", [0, 1])
        ]
        kafka.clock.advance(46.0)
        assert client.commit(18, joined) == "unknown_member_id"
        assert client.commit(18) == "none"  # nobody is a member: anybody may
        assert client.fetch() == 18


@pytest.mark.parametrize("kept", [True, False])
def test_k1_a_coordinator_that_moves_takes_all_with_it(kept: bool, tmp_path: Path) -> None:
    with held(3, data=tmp_path if kept else None) as kafka:
        first = coordinator(kafka, "group")
        with GroupClient(kafka) as client:
            joined = client.join(instance="pod-1")
            client.sync(joined, b"all")
            assert client.commit(17, joined) == "none"
        kafka.stop(first)
        second = coordinator(kafka, "group")
        assert second != first
        with GroupClient(kafka) as client:
            assert client.heartbeat(joined) == "none"
            assert client.fetch() == 17
            described = client.describe()
            assert (described.group_state, described.protocol_data) == ("Stable", "range")
            (member,) = described.members
            assert (member.member_id, member.group_instance_id) == (joined.member_id, "pod-1")
            assert member.member_assignment == b"all"
            kafka.clock.advance(45.1)  # sessions begin anew with the new coordinator
            assert client.describe().group_state == "Empty"


def test_who_waits_for_a_coordinator_that_moves_is_sent_to_the_next_one() -> None:
    with held(3) as kafka, GroupClient(kafka) as one, GroupClient(kafka) as two:
        first = coordinator(kafka, "group")
        joined = one.join()
        one.sync(joined, b"all")
        number = two.send_join(instance="pod-2")
        kafka.until_waiting("Rebalance")
        partition = offsets_partition(kafka)
        following = first % 3 + 1

        def move() -> None:
            state = kafka.controller.topics[OFFSETS.name].partitions[partition]
            replicas = (following, *(broker for broker in state.replicas if broker != following))
            kafka.controller.leaders.reassign(state, replicas, factor_may_change=False)
            kafka.controller.leaders.elect_preferred(kafka.controller.topics[OFFSETS.name].partitions[partition])
            kafka.network.settle()

        kafka._on_loop(move)
        assert two.client.receive(11, 5, number).error_code.name == "not_coordinator"
        assert one.heartbeat(joined) == "not_coordinator"
        assert coordinator(kafka, "group") == following
        with GroupClient(kafka) as again:
            assert again.heartbeat(joined) == "none"


def test_a_commit_counts_once_every_in_sync_replica_has_it() -> None:
    with held(3) as kafka, GroupClient(kafka) as client, GroupClient(kafka) as reader:
        assert client.commit(1) == "none"
        follower = coordinator(kafka, "group") % 3 + 1
        with kafka.paused(follower):
            number = client.client.send(
                8, 8, group_id="group", member_id="", topics=[{"name": "t", "partitions": [
                    {"partition_index": 0, "committed_offset": 2, "committed_metadata": None},
                ]}],
            )  # fmt: skip
            kafka.until_waiting("Produce")
            assert reader.fetch() == 1
        said = client.client.receive(8, 8, number)
        assert said.topics[0].partitions[0].error_code.name == "none"
        assert reader.fetch() == 2


def test_a_commit_that_takes_too_long_is_refused_and_may_count_later() -> None:
    with held(3) as kafka, GroupClient(kafka) as client, GroupClient(kafka) as reader:
        assert client.commit(1) == "none"
        with kafka.paused(coordinator(kafka, "group") % 3 + 1):
            number = client.client.send(
                8, 8, group_id="group", member_id="", topics=[{"name": "t", "partitions": [
                    {"partition_index": 0, "committed_offset": 2, "committed_metadata": None},
                ]}],
            )  # fmt: skip
            kafka.until_waiting("Produce")
            kafka.clock.advance(5.001)
            said = client.client.receive(8, 8, number)
            assert said.topics[0].partitions[0].error_code.name == "coordinator_not_available"
            assert reader.fetch() == 1
        assert reader.fetch() == 2


def test_k1_groups_are_there_after_a_restart(tmp_path: Path) -> None:
    with held(data=tmp_path) as kafka, GroupClient(kafka) as client:
        joined = client.join()
        client.sync(joined, b"all")
        client.commit(17, joined)
    with held(data=tmp_path) as kafka, GroupClient(kafka) as client:
        assert client.fetch() == 17
        assert client.heartbeat(joined) == "none"
        assert kafka.waiting("Heartbeat")[0].keys == (("group", joined.member_id),)


def test_offsets_are_forgotten_after_their_retention() -> None:
    with held(settings=AN_HOUR) as kafka, GroupClient(kafka) as client:
        client.commit(17)
        kafka.clock.advance(3_500.0)
        assert client.fetch() == 17
        kafka.clock.advance(1_300.0)  # it is looked each 10 minutes
        assert client.fetch() == -1
        assert client.describe().error_code.name == "group_id_not_found"
        assert [record.value for record in kafka.records(OFFSETS.name)][-1] is None


def test_offsets_of_a_group_with_members_are_kept() -> None:
    with held(settings=AN_HOUR) as kafka, GroupClient(kafka) as client:
        joined = client.join(session=1_800.0)
        client.sync(joined, b"all")
        client.commit(17, joined)
        for _ in range(5):
            kafka.clock.advance(1_000.0)
            assert client.heartbeat(joined) == "none"
        assert client.fetch() == 17


def test_offsets_go_with_their_topic() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        client.commit(17)
        kafka.delete_topic("t")
        assert client.fetch() == -1


def test_a_group_is_deleted_once_it_has_no_members() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        joined = client.join()
        client.sync(joined, b"all")
        client.commit(17, joined)
        (result,) = client.ask("DeleteGroups", groups_names=["group"]).results
        assert result.error_code.name == "non_empty_group"
        (left,) = client.ask("LeaveGroup", members=[{"member_id": joined.member_id}]).members
        assert left.error_code.name == "none"
        results = client.ask("DeleteGroups", groups_names=["group", "absent", ""]).results
        assert {one.group_id: one.error_code.name for one in results} == {
            "group": "none", "absent": "group_id_not_found", "": "group_id_not_found",
        }  # fmt: skip
        assert client.fetch() == -1
        assert client.ask("ListGroups").groups == ()


def test_k5_a_group_whose_last_session_has_just_ended_is_deleted_before_the_timer_says_so() -> None:
    """librdkafka's 0081_admin sleeps a session's seconds after a static member's close, and deletes the group."""
    with Cluster(settings={"group.min.session.timeout.ms": 1}) as kafka, GroupClient(kafka) as client:
        kafka.create_topic("t")
        joined = client.join(instance="static", session=0.5)
        client.sync(joined, b"all")
        assert kafka._loop is not None
        kafka._loop.call_soon_threadsafe(time.sleep, 1.0)  # then the request and the end of the session are both there
        (result,) = client.ask("DeleteGroups", groups_names=["group"]).results
        assert result.error_code.name == "none"
        assert client.ask("ListGroups").groups == ()


def test_offsets_are_deleted_where_nobody_reads() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        kafka.create_topic("other")
        joined = client.join()
        client.sync(joined, b"all")
        client.commit(17, joined)
        client.commit(5, joined, topic="other")
        said = client.ask(
            "OffsetDelete",
            topics=[{"name": name, "partitions": [{"partition_index": 0}]} for name in ("t", "other", "absent")],
        )
        assert {topic.name: topic.partitions[0].error_code.name for topic in said.topics} == {
            "t": "group_subscribed_to_topic", "other": "none", "absent": "unknown_topic_or_partition",
        }  # fmt: skip
        assert (client.fetch(), client.fetch("other")) == (17, -1)


def test_groups_are_listed_by_state_and_by_type() -> None:
    with held() as kafka, GroupClient(kafka, "reading") as reading, GroupClient(kafka, "idle") as idle:
        reading.sync(reading.join(), b"all")
        idle.commit(1)

        def listed(**filters: Any) -> list[tuple[str, str, str, str]]:
            groups = reading.ask("ListGroups", **filters).groups
            return sorted((one.group_id, one.protocol_type, one.group_state, one.group_type) for one in groups)

        both = [("idle", "", "Empty", "classic"), ("reading", "consumer", "Stable", "classic")]
        assert listed() == both
        assert listed(states_filter=["stable"]) == both[1:]
        assert listed(types_filter=["Classic"]) == both
        assert listed(types_filter=["consumer"]) == []


def test_who_asks_the_wrong_broker_is_told_so() -> None:
    with held(3) as kafka:
        wrong = coordinator(kafka, "group") % 3 + 1
        with GroupClient(kafka, broker=wrong) as client:
            assert client.join().error_code.name == "not_coordinator"
            assert client.commit(1) == "not_coordinator"
            assert client.ask("OffsetFetch", 7, topics=None).error_code.name == "not_coordinator"
            assert client.describe().error_code.name == "not_coordinator"
            assert client.ask("ListGroups").groups == ()


def test_offsets_of_topics_that_are_not_there_are_refused() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        assert client.commit(1, topic="absent") == "unknown_topic_or_partition"
        assert client.commit(1, partition=9) == "unknown_topic_or_partition"
        assert client.fetch("absent") == -1
        assert client.ask("ListGroups").groups == ()
        long = client.ask(
            "OffsetCommit", 8, member_id="", topics=[{"name": "t", "partitions": [
                {"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 4097},
                {"partition_index": 1, "committed_offset": 1, "committed_metadata": "x" * 4096},
            ]}],
        )  # fmt: skip
        found = [one.error_code.name for one in long.topics[0].partitions]
        assert found == ["offset_metadata_too_large", "none"]


def test_session_time_outs_beyond_the_limits_are_refused() -> None:
    with held() as kafka, GroupClient(kafka) as client:
        assert client.join(session=5.9).error_code.name == "invalid_session_timeout"
        assert client.join(session=1_801.0).error_code.name == "invalid_session_timeout"
        assert client.join(session=6.0).error_code.name == "none"


def test_k1_an_offset_in_a_transaction_counts_once_its_marker_is_replicated() -> None:
    """Readers see the one before until then; who requires what is stable waits for it, as in Kafka."""
    settings = {
        "offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
    }  # fmt: skip
    with (
        Cluster(3, clock="held", settings=settings) as kafka,
        GroupClient(kafka) as client,
        GroupClient(kafka) as other,
    ):
        kafka.create_topic("t")
        assert client.commit(5) == "none"
        (till,) = client.client.ask(10, 6, key_type=1, coordinator_keys=["till"]).coordinators
        with WireClient(f"127.0.0.1:{till.port}") as coordinating:
            who: dict[str, Any] = {"transactional_id": "till"}
            said = coordinating.ask(22, 4, transaction_timeout=60 * SECOND, producer_id=-1, producer_epoch=-1, **who)
            who |= {"producer_id": said.producer_id, "producer_epoch": said.producer_epoch}
            coordinating.ask(25, 3, group_id="group", **who)
            partition = {"partition_index": 0, "committed_offset": 17, "committed_metadata": ""}
            client.ask("TxnOffsetCommit", 3, **who, topics=[{"name": "t", "partitions": [partition]}])
            leader = coordinator(kafka, "group")
            follower = next(number for number in (1, 2, 3) if number not in (leader, till.node_id))
            with kafka.paused(follower):
                coordinating.send(26, 3, committed=True, **who)
                wait_until(lambda: any(one.keys[0][0] == OFFSETS.name for one in kafka.waiting("Produce")))
                assert client.fetch() == 5
                number = other.client.send(
                    9, 7, require_stable=True, group_id="group", topics=[{"name": "t", "partition_indexes": [0]}]
                )
                wait_until(lambda: len(kafka.waiting("Produce")) > 1)
            said = other.client.receive(9, 7, number)
            assert said.topics[0].partitions[0].committed_offset == client.fetch() == 17


@pytest.mark.parametrize("before", [False, True], ids=["committed in it only", "committed before"])
@pytest.mark.parametrize("how", ["OffsetDelete", "DeleteGroups"])
def test_an_offset_that_is_deleted_does_not_come_back_with_the_transaction_that_is_open(how: str, before: bool) -> None:
    settings = {"transaction.state.log.num.partitions": 1, "transaction.state.log.min.isr": 1}
    with Cluster(clock="held", settings=settings) as kafka, GroupClient(kafka) as client:
        kafka.create_topic("t")
        if before:
            assert client.commit(5) == "none"
        client.client.ask(10, 6, key_type=1, coordinator_keys=["till"])
        who: dict[str, Any] = {"transactional_id": "till"}
        said = client.client.ask(22, 4, transaction_timeout=60 * SECOND, producer_id=-1, producer_epoch=-1, **who)
        who |= {"producer_id": said.producer_id, "producer_epoch": said.producer_epoch}
        client.client.ask(25, 3, group_id="group", **who)
        partition = {"partition_index": 0, "committed_offset": 17, "committed_metadata": ""}
        said = client.ask("TxnOffsetCommit", 3, **who, topics=[{"name": "t", "partitions": [partition]}])
        assert said.topics[0].partitions[0].error_code.name == "none"
        if how == "OffsetDelete":
            said = client.ask(how, topics=[{"name": "t", "partitions": [{"partition_index": 0}]}])
            assert said.error_code.name == said.topics[0].partitions[0].error_code.name == "none"
        else:
            assert client.ask(how, groups_names=["group"]).results[0].error_code.name == "none"
        assert client.client.ask(26, 3, committed=True, **who).error_code.name == "none"
        kafka.clock.advance(0.2)
        assert not kafka.waiting("InterBroker")
        assert client.fetch() == -1
