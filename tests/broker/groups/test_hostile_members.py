"""Hostile and confused members, of each protocol and of both in one group: whatever they do, the others go on."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.protocol import HeartbeatRequest
from abeyant.broker.wire.apis import BY_NAME
from broker.groups.mixed_desk import GROUP, TOPIC, MixedDesk, New, Old, settle
from broker.groups.test_consumer_groups import Consumer, held
from broker.groups.wire import JOIN, SECOND, GroupClient
from broker.wire import encoded
from waiting import wait_until

KINDS = ["classic", "new", "both"]


def a_group(kind: str) -> tuple[MixedDesk, list[Old | New]]:
    """Two members that share what there is."""
    desk = MixedDesk()
    members: list[Old | New] = [
        Old(desk, "one", eager=False) if kind == "classic" else New(desk, "one"),
        New(desk, "two") if kind == "new" else Old(desk, "two", eager=True),
    ]
    go_on(desk, members)
    return desk, members


def go_on(desk: MixedDesk, members: list[Old | New]) -> None:
    """Time passes until all is well: each has as much as another, and all is had."""
    for _ in range(12):
        desk.timer.advance(5.0)
        for member in members:
            member.beat()
            settle(members)
    had = sorted(partition for member in members for partition in member.has)
    assert had == sorted(desk.all)
    sizes = [len(member.has) for member in members]
    assert max(sizes) - min(sizes) <= 1


def of_like_kind(desk: MixedDesk, kind: str, name: str) -> Old | New:
    return New(desk, name) if kind == "new" else Old(desk, name, eager=True)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_generations_and_strangers(kind: str) -> None:
    desk, members = a_group(kind)
    before = [member.has for member in members]
    shard = desk.shard
    for wrong in (-3, -2, -1, 1_000, 2**31 - 1):
        for member_id in [*(member.id for member in members), "stranger", ""]:
            with pytest.raises(ApiError):
                desk.heartbeat(member_id, wrong)
            if GROUP in shard.consumers:
                with pytest.raises(ApiError):
                    shard.classic_members.sync(
                        shard.consumers[GROUP], (member_id, "pod"), wrong, (None, None), lambda _: None
                    )
                with pytest.raises(ApiError):
                    shard.consumer_protocol.heartbeat(
                        shard.consumers[GROUP], HeartbeatRequest(member_id, wrong), lambda _: None
                    )
    go_on(desk, members)
    assert [member.has for member in members] == before, "nobody noticed"


@pytest.mark.parametrize("kind", KINDS)
def test_two_members_of_one_id(kind: str) -> None:
    """The coordinator takes them for one; once they have gone, all is as it was."""
    desk, members = a_group(kind)
    twins = [of_like_kind(desk, kind, "twin") for _ in range(2)]
    everybody = [*members, *twins]
    choose = random.Random(7)
    for _ in range(60):
        if twins[0].id:
            twins[1].id = twins[0].id
        choose.choice(everybody).beat()
        settle(everybody)
        desk.timer.advance(0.5)
    desk.timer.advance(31.0)
    go_on(desk, members)


@pytest.mark.parametrize("kind", KINDS)
def test_a_storm_of_joins(kind: str) -> None:
    desk, members = a_group(kind)
    for number in range(200):
        of_like_kind(desk, kind, f"storm-{number}").beat()
        for member in members:
            member.beat()
    settle(members)
    for _ in range(20):  # longer than any session and any rebalance, but for those that were never told their ids
        desk.timer.advance(20.0)
        for member in members:
            member.beat()
            settle(members)
    go_on(desk, members)
    assert desk.members == {member.id for member in members}


@pytest.mark.parametrize("kind", KINDS)
def test_members_that_join_and_do_no_more(kind: str) -> None:
    """They never sync, or never give back: out at the end of their rebalance time-out, at the latest."""
    desk, members = a_group(kind)
    for number in range(3):
        lazy = of_like_kind(desk, kind, f"lazy-{number}")
        lazy.beat()
        if isinstance(lazy, Old) and lazy.joins:
            lazy.hear()  # it has been given an id, and joins with that
        for member in members:
            member.beat()
            settle(members)
    go_on(desk, members)
    assert desk.members == {member.id for member in members}


@pytest.mark.parametrize("kind", ["classic", "new"])
def test_offsets_of_topics_and_partitions_that_are_not_there(kind: str) -> None:
    with held() as kafka, GroupClient(kafka) as client:
        who: dict[str, Any]
        if kind == "new":
            one = Consumer(client, "one")
            one.beat()
            who = {"member_id": "one", "generation_id_or_member_epoch": one.epoch}
        else:
            joined = client.join()
            client.sync(joined)
            who = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
        rows = [
            {"name": name, "partitions": [{"partition_index": index, "committed_offset": 3, "committed_metadata": ""}]}
            for name, index in ((TOPIC, 0), (TOPIC, 4), (TOPIC, -1), ("none", 0), ("", 0))
        ]
        said = client.ask("OffsetCommit", 9, topics=rows, **who)
        errors = [topic.partitions[0].error_code.name for topic in said.topics]
        assert errors == ["none", *["unknown_topic_or_partition"] * 4]
        assert client.fetch() == 3


@pytest.mark.parametrize("broken", ["its name is too long", "its answer cannot be written"])
def test_one_that_cannot_be_answered_keeps_nobody_from_an_answer(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"group.initial.rebalance.delay.ms": 1_000}
    with held(settings=settings) as kafka, GroupClient(kafka) as client, GroupClient(kafka) as other:
        asked: dict[str, Any] = {
            "group_id": "group", "session_timeout": 45 * SECOND, "rebalance_timeout": 45 * SECOND, "member_id": "",
            "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"x"}],
        }  # fmt: skip
        request = encoded(JOIN, 3, 1, **asked)
        name = struct.pack(">h", 32_760) + b"z" * 32_760 if broken == "its name is too long" else b"\0\4wire"
        request = request.replace(b"\0\4wire", name)
        client.client.socket.sendall(struct.pack(">i", len(request)) + request)
        groups = kafka.brokers[1].group_coordinator.shard("group").groups
        wait_until(lambda: "group" in groups and groups["group"].awaiting_join == 1)
        number = other.client.send(JOIN, 3, **asked)
        wait_until(lambda: groups["group"].awaiting_join == 2)
        codec = BY_NAME["JoinGroup"].codec(3)
        write, left = codec.write_response, [None]

        def write_but_one(append: Any, response: Any) -> None:
            if broken == "its answer cannot be written" and left:
                left.pop()
                raise ValueError("too long")
            write(append, response)

        monkeypatch.setattr(codec, "write_response", write_but_one)
        kafka.clock.advance(2.0)
        assert other.client.receive(JOIN, 3, number).error_code.name == "none"
        said = client.client.receive(JOIN, 3, 1).error_code.name
        assert said == ("none" if broken == "its name is too long" else "unknown_server_error")


def test_a_text_longer_than_kafka_reads_ends_the_connection() -> None:
    with held() as kafka, GroupClient(kafka) as client, pytest.raises(ConnectionError):
        client.ask("Heartbeat", 4, member_id="m" * 32_768, generation_id=1)
    with held() as kafka, GroupClient(kafka) as client:
        said = client.ask("Heartbeat", 4, member_id="m" * 32_767, generation_id=1)
        assert said.error_code.name == "unknown_member_id"
