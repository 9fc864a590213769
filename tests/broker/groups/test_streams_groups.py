"""Streams groups (KIP-1071): topics, tasks, epochs and time-outs, in held time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.groups.streams import WORDS, StreamsMember

ALL = {(name, index) for name in "01" for index in range(3)}
MISSING_SOURCE, WRONG_COUNT, MISSING_INTERNAL, SHUTDOWN, DELAYED = 1, 2, 3, 4, 5


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(3, clock="held", settings={"offsets.topic.num.partitions": "1"}) as kafka:
        kafka.create_topic("lines", partitions=3)
        yield kafka


def statuses(answer: Any) -> dict[int, str]:
    return {one.status_code: one.status_detail for one in answer.status}


def joined(kafka: Cluster, member: str = "one", **more: Any) -> StreamsMember:
    """A member that has joined and, if it is the first, has seen the internal topics made."""
    found = StreamsMember(kafka, member, **more)
    found.beat()
    found.beat()
    return found


def committed(kafka: Cluster) -> dict[tuple[str, int], int]:
    return {(one.topic, one.partition): one.offset for one in kafka.group("app").offsets}


def settle(*members: StreamsMember) -> None:
    """Heartbeats, until every member has its target."""
    for _ in range(4):
        for member in members:
            member.beat()


def test_internal_topics_are_made_and_tasks_assigned(kafka: Cluster) -> None:
    with StreamsMember(kafka, "one") as member:
        first = member.beat()
        assert statuses(first) == {MISSING_INTERNAL: "Internal topics are missing: words-changelog, words-repartition"}
        assert first.heartbeat_interval < timedelta(seconds=1)
        assert (first.member_epoch, member.tasks) == (2, set())
        second = member.beat()
        assert statuses(second) == {}
        assert second.heartbeat_interval == timedelta(seconds=5)
        assert (second.member_epoch, member.tasks) == (3, ALL)
        for name in ("words-changelog", "words-repartition"):
            assert len(kafka.controller.topics[name].partitions) == 3
        assert kafka.controller.topics["words-changelog"].settings["cleanup.policy"] == ("compact",)
        assert member.describe().group_state == "Stable"
        assert kafka.group("app").protocol == "streams"


def test_tasks_move_only_after_they_were_revoked(kafka: Cluster) -> None:
    with joined(kafka) as one, StreamsMember(kafka, "two") as two:
        assert two.beat().member_epoch == 4
        assert two.tasks == set()
        assert one.beat().member_epoch == 3, "it has to revoke first"
        assert len(one.tasks) == 3
        two.beat()
        assert two.tasks == set(), "the other has not said yet that it revoked"
        assert one.beat().member_epoch == 4
        two.beat()
        assert one.tasks | two.tasks == ALL
        assert not one.tasks & two.tasks
        assert two.describe().group_state == "Stable"


def test_a_silent_member_loses_its_tasks_at_its_session_time_out(kafka: Cluster) -> None:
    """K5, and K8: 45 s pass at once."""
    with joined(kafka) as one, StreamsMember(kafka, "two") as two:
        settle(one, two)
        kafka.clock.advance(40.0)
        one.beat()
        kafka.clock.advance(4.99)
        one.beat()
        assert len(one.tasks) == 3
        assert {row.keys for row in kafka.waiting("Heartbeat")} == {(("app", "one"),), (("app", "two"),)}
        kafka.clock.advance(0.02)
        settle(one)
        assert one.tasks == ALL


def test_a_member_that_does_not_revoke_in_time_leaves(kafka: Cluster) -> None:
    with joined(kafka) as one, joined(kafka, "two") as two:
        one.beat()
        for _ in range(2):
            kafka.clock.advance(29.0)
            two.beat()
            assert one.send(active_tasks=None, standby_tasks=None, warmup_tasks=None).error_code is ErrorCode.none
        kafka.clock.advance(2.1)
        assert one.send().error_code is ErrorCode.unknown_member_id
        settle(two)
        assert two.tasks == ALL


def test_the_next_coordinator_goes_on_with_the_group(kafka: Cluster) -> None:
    with joined(kafka) as one, StreamsMember(kafka, "two") as two:
        settle(one, two)
        before = one.describe()
        kafka.stop(kafka.group("app").coordinator)
        for member in (one, two):
            member.reconnect()
            assert member.beat().member_epoch == before.group_epoch
        after = one.describe()
        assert after.members == before.members
        assert after.topology.epoch == 0
        kafka.clock.advance(46.0)
        assert kafka.group("app").state == "Empty"


def test_commits_of_an_older_epoch_are_for_tasks_that_stayed(kafka: Cluster) -> None:
    with joined(kafka) as one, StreamsMember(kafka, "two") as two:
        old = one.epoch
        settle(one, two)
        assert one.epoch > old
        (kept,) = one.active["0"][:1]
        lost = next(index for index in range(3) if index not in one.active["0"])

        def commit(index: int, epoch: int, member: str = "one") -> ErrorCode:
            topics = [{"name": "lines", "partitions": [{"partition_index": index, "committed_offset": 7}]}]
            answer = one.ask(8, 9, group_id="app", member_id=member, generation_id_or_member_epoch=epoch, topics=topics)
            found: ErrorCode = answer.topics[0].partitions[0].error_code
            return found

        assert commit(kept, old) is ErrorCode.none
        assert commit(lost, old) is ErrorCode.stale_member_epoch
        assert commit(kept, one.epoch + 1) is ErrorCode.stale_member_epoch
        assert commit(kept, one.epoch, "nobody") is ErrorCode.unknown_member_id
        assert committed(kafka) == {("lines", kept): 7}


def test_a_fenced_member_and_a_lost_answer(kafka: Cluster) -> None:
    with joined(kafka) as one, StreamsMember(kafka, "two") as two:
        settle(one, two)
        one.epoch += 1
        assert one.send().error_code is ErrorCode.fenced_member_epoch
        one.epoch -= 2
        one.active = {}
        assert one.beat().member_epoch == two.epoch, "its last answer may have been lost"
        one.epoch -= 1
        assert one.send(active_tasks=[{"subtopology_id": "0", "partitions": [0, 1, 2]}]).error_code is (
            ErrorCode.fenced_member_epoch
        )


def test_the_first_assignment_waits_for_more_members(kafka: Cluster) -> None:
    kafka._settled(kafka.controller.groups.change, "app", {"streams.initial.rebalance.delay.ms": "3000"})
    with joined(kafka) as one, joined(kafka, "two") as two:
        assert DELAYED in statuses(one.beat())
        kafka.clock.advance(2.99)
        assert DELAYED in statuses(two.beat())
        assert not one.tasks | two.tasks
        kafka.clock.advance(0.02)
        assert statuses(one.beat()) == statuses(two.beat()) == {}
        assert (len(one.tasks), len(two.tasks)) == (3, 3), "none of them had to revoke"


def test_standby_tasks_are_with_other_processes(kafka: Cluster) -> None:
    kafka._settled(kafka.controller.groups.change, "app", {"streams.num.standby.replicas": "1"})
    with joined(kafka) as one, joined(kafka, "two") as two, joined(kafka, "three", process="two") as three:
        settle(one, two, three)
        copies = [("1", index) for member in (one, two, three) for index in member.standby.get("1", [])]
        assert sorted(copies) == [("1", 0), ("1", 1), ("1", 2)]
        assert not one.tasks & {("1", index) for index in one.standby.get("1", [])}
        assert not (two.tasks | three.tasks) & {
            ("1", index) for member in (two, three) for index in member.standby.get("1", [])
        }
        assert "0" not in one.standby | two.standby | three.standby, "it has no state"


@pytest.mark.parametrize(
    ("topics", "counts", "status", "detail"),
    [
        ((), (), MISSING_SOURCE, "Source topics left, right are missing."),
        (
            ("left", "right"),
            (2, 3),
            WRONG_COUNT,
            "Following topics do not have the same number of partitions: [{left=2, right=3}]",
        ),
        (
            ("left", "right", "store"),
            (2, 2, 5),
            WRONG_COUNT,
            "Existing topic store has different number of partitions: expected 2, found 5",
        ),
    ],
)
def test_topics_that_do_not_fit(
    kafka: Cluster, topics: tuple[str, ...], counts: tuple[int, ...], status: int, detail: str
) -> None:
    for name, count in zip(topics, counts, strict=True):
        kafka.create_topic(name, partitions=count)
    join = {
        "subtopology_id": "0", "source_topics": ["left", "right"], "repartition_source_topics": [],
        "state_changelog_topics": [{"name": "store", "topic_configs": []}],
        "copartition_groups": [{"source_topics": [0, 1]}],
    }  # fmt: skip
    with StreamsMember(kafka, "one", topology={"epoch": 0, "subtopologies": [join]}) as member:
        assert statuses(member.beat()) == {status: detail}
        assert member.describe().group_state == "NotReady"
        assert member.tasks == set()


def test_an_application_is_asked_to_shut_down(kafka: Cluster) -> None:
    with joined(kafka) as one, joined(kafka, "two") as two:
        one.send(member_epoch=-1, shutdown_application=True)
        assert statuses(two.beat())[SHUTDOWN].startswith("Streams group member one encountered a fatal error")
        two.send(member_epoch=-1)
        with joined(kafka, "three") as three:
            assert SHUTDOWN not in statuses(three.beat())


def test_endpoints_for_queries(kafka: Cluster) -> None:
    endpoint = {"host": "here", "port": 8080}
    with joined(kafka, user_endpoint=endpoint) as one, joined(kafka, "two") as two:
        answer = two.beat(endpoint_information_epoch=-1)
        (row,) = answer.partitions_by_user_endpoint
        assert (row.user_endpoint.host, row.user_endpoint.port) == ("here", 8080)
        assert {part.topic for part in row.active_partitions} == {"lines", "words-repartition"}
        same = two.beat(endpoint_information_epoch=answer.endpoint_information_epoch)
        assert same.partitions_by_user_endpoint is None
        assert one.epoch


def test_a_group_of_another_protocol_is_refused(kafka: Cluster) -> None:
    with joined(kafka) as one:
        beat = {"member_epoch": 0, "rebalance_timeout": timedelta(seconds=60), "topic_partitions": []}
        answer = one.ask(68, 1, group_id="app", member_id="two", subscribed_topic_names=["lines"], **beat)
        assert answer.error_code is ErrorCode.group_id_not_found
        assert one.ask(89, 0, group_ids=["other"]).groups[0].error_code is ErrorCode.group_id_not_found
        (row,) = one.ask(
            47, 0, group_id="app", topics=[{"name": "lines", "partitions": [{"partition_index": 0}]}]
        ).topics
        assert row.partitions[0].error_code is ErrorCode.group_subscribed_to_topic


def test_an_empty_classic_group_becomes_a_streams_group_with_its_offsets(kafka: Cluster) -> None:
    kafka.commit("app", {("lines", 0): 5})
    with joined(kafka) as one:
        assert kafka.group("app").protocol == "streams"
        assert committed(kafka) == {("lines", 0): 5}
        one.send(member_epoch=-1)
        assert one.ask(42, 2, groups_names=["app"]).results[0].error_code is ErrorCode.none
        assert "app" not in kafka.groups()


def test_streams_groups_may_be_off() -> None:
    settings = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    with Cluster(settings=settings) as kafka, StreamsMember(kafka, "one") as one:
        assert one.send().error_code is ErrorCode.unsupported_version
        assert one.ask(89, 0, group_ids=["app"]).groups[0].error_code is ErrorCode.unsupported_version


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"topology": None}, ErrorCode.invalid_request, "Topology must be non-null when (re-)joining."),
        ({"instance_id": "pod"}, ErrorCode.invalid_request, "Static membership is not yet supported."),
        (
            {"topology": {"epoch": 0, "subtopologies": [{**WORDS["subtopologies"][0], "source_topics": ["a b"]}]}},
            ErrorCode.streams_invalid_topology,
            "Topic names a b are not valid topic names.",
        ),
    ],
)
def test_a_first_heartbeat_that_cannot_be(kafka: Cluster, more: Any, error: ErrorCode, message: str) -> None:
    with StreamsMember(kafka, "one", **more) as one:
        answer = one.send()
        assert (answer.error_code, answer.error_message) == (error, message)
        assert "app" not in kafka.groups()


def test_a_target_is_kept_for_the_assignment_interval() -> None:
    settings = {"offsets.topic.num.partitions": "1", "group.streams.assignment.interval.ms": "5000"}
    with Cluster(clock="held", settings=settings) as kafka:
        kafka.create_topic("lines", partitions=3)
        with joined(kafka) as one, StreamsMember(kafka, "two") as two:
            kafka.clock.advance(5.0)
            one.beat()  # the internal topics are there now
            assert one.tasks == ALL
            answer = two.beat()
            assert statuses(answer) == {DELAYED: "Assignment delayed due to the configured assignment interval."}
            assert answer.heartbeat_interval == timedelta(seconds=5), "nobody is asked to hurry"
            assert two.tasks == set()
            kafka.clock.advance(5.0)
            settle(two, one, two)
            assert one.tasks
            assert two.tasks
            assert one.tasks | two.tasks == ALL
