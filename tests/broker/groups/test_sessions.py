"""A session that is over has ended for whoever asks about its group, even before the timer says so (K5)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from abeyant.broker import Cluster
from broker.groups.wire import GroupClient, offsets_partition

MINUTE = timedelta(minutes=1)
TASKS = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]}
FIRST: dict[str, dict[str, Any]] = {
    "Consumer": {"rebalance_timeout": MINUTE, "subscribed_topic_names": ["t"], "topic_partitions": []},
    "Share": {"subscribed_topic_names": ["t"]},
    "Streams": {
        "rebalance_timeout": MINUTE, "topology": TASKS, "client_tags": None, "task_offsets": None,
        "task_end_offsets": None, "process_id": "here", "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
    },
}  # fmt: skip
KINDS = ["Classic", *FIRST]


@pytest.fixture
def client() -> Iterator[GroupClient]:
    with Cluster(1, clock="held") as kafka:
        kafka.create_topic("t")
        with GroupClient(kafka) as client:
            yield client


def join(client: GroupClient, kind: str) -> None:
    """Join as the only member."""
    if kind == "Classic":
        client.sync(client.join(), b"all")
    else:
        said = client.ask(f"{kind}GroupHeartbeat", member_id="one", member_epoch=0, **FIRST[kind])
        assert said.error_code.name == "none", said
    assert len(describe(client, kind).members) == 1


def describe(client: GroupClient, kind: str) -> Any:
    if kind == "Classic":
        return client.describe()
    return client.ask(f"{kind}GroupDescribe", group_ids=[client.group]).groups[0]


def late(client: GroupClient, seconds: float) -> None:
    """Let so many seconds pass that the timer has not noticed."""
    (broker,) = client.kafka.brokers.values()
    shard = broker.group_coordinator.shards[offsets_partition(client.kafka)]
    shard.sessions._now = lambda: broker.now() + seconds


@pytest.mark.parametrize("kind", KINDS)
def test_k5_a_describe_shows_no_member_whose_session_is_over(client: GroupClient, kind: str) -> None:
    join(client, kind)
    late(client, 44.999)
    assert len(describe(client, kind).members) == 1
    late(client, 45.0)
    said = describe(client, kind)
    assert (said.members, said.group_state) == ((), "Empty")
    assert client.kafka.waiting("Heartbeat") == []


@pytest.mark.parametrize("kind", KINDS)
def test_k5_the_list_shows_a_group_empty_once_the_last_session_is_over(client: GroupClient, kind: str) -> None:
    join(client, kind)
    late(client, 45.0)
    assert [one.group_state for one in client.ask("ListGroups").groups] == ["Empty"]


@pytest.mark.parametrize("kind", KINDS)
def test_k5_a_group_is_deleted_once_the_last_session_is_over(client: GroupClient, kind: str) -> None:
    join(client, kind)
    late(client, 44.999)
    (result,) = client.ask("DeleteGroups", groups_names=["group"]).results
    assert result.error_code.name == "non_empty_group"
    late(client, 45.0)
    (result,) = client.ask("DeleteGroups", groups_names=["group"]).results
    assert result.error_code.name == "none"


@pytest.mark.parametrize("kind", ["Classic", "Consumer", "Streams"])
def test_k5_offsets_are_deleted_once_the_last_session_is_over(client: GroupClient, kind: str) -> None:
    assert client.commit(7) == "none"
    join(client, kind)
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    (topic,) = client.ask("OffsetDelete", topics=topics).topics
    assert topic.partitions[0].error_code.name == "group_subscribed_to_topic"
    late(client, 45.0)
    (topic,) = client.ask("OffsetDelete", topics=topics).topics
    assert topic.partitions[0].error_code.name == "none"
    assert client.fetch() == -1


@pytest.mark.parametrize("kind", ["Classic", "Consumer", "Streams"])
def test_k5_who_is_no_member_commits_once_the_last_session_is_over(client: GroupClient, kind: str) -> None:
    join(client, kind)
    assert client.commit(7) == "unknown_member_id"
    late(client, 45.0)
    assert client.commit(7) == "none"


def test_k5_a_share_group_starts_elsewhere_once_the_last_session_is_over(client: GroupClient) -> None:
    join(client, "Share")
    topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    assert client.ask("AlterShareGroupOffsets", topics=topics).error_code.name == "non_empty_group"
    late(client, 45.0)
    assert client.ask("AlterShareGroupOffsets", topics=topics).error_code.name == "none"
    join(client, "Share")
    late(client, 90.0)
    said = client.ask("DeleteShareGroupOffsets", topics=[{"topic_name": "t"}])
    assert said.error_code.name == "none"
