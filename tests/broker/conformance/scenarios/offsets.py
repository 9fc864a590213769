"""Offsets that groups commit: OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from ..grouped import Group
from ..messages import Plain
from ..scenario import Stage, Topic, scenario, table

UNKNOWN_ID = "11111111-2222-3333-4444-555555555555"
SUBSCRIPTION = b"\0\0\0\0\0\1"


def committing(topic: Topic, *offsets: int, metadata: str | None = "note", **more: Plain) -> dict[str, Plain]:
    """A commit of these offsets, the first in partition 0."""
    rows = [
        {
            "partition_index": index, "committed_offset": offset, "committed_leader_epoch": 0,
            "committed_metadata": metadata,
        }
        for index, offset in enumerate(offsets)
    ]  # fmt: skip
    return {
        "member_id": "", "generation_id_or_member_epoch": -1,
        "topics": [{"name": topic.name, "topic_id": topic.id, "partitions": rows}], **more,
    }  # fmt: skip


def asking(group: str, *topics: Topic, partitions: int = 2, **more: Plain) -> dict[str, Plain]:
    """An OffsetFetch; of everything where no topic is given."""
    rows: Plain = [
        {"name": topic.name, "topic_id": topic.id, "partition_indexes": list(range(partitions))} for topic in topics
    ]
    rows = rows or None
    return {"topics": rows, "groups": [{"group_id": group, "topics": rows}], **more}


@scenario("OffsetCommit", at=range(2, 11))
def committed_by_nobody(stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), Group(stage)
    group.ask("OffsetCommit", committing(topic, 5, 7))
    group.ask("OffsetFetch", asking(group.id, topic))
    group.ask("DescribeGroups", {"groups": [group.id]})


@scenario("OffsetCommit", at=(2, 5, 9, 10))
def committed_by_a_member(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    joined = group.join()
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    group.ask("OffsetCommit", committing(topic, 5, **who))
    group.sync(joined, b"assignment")
    group.ask("OffsetCommit", committing(topic, 6, **who))
    group.ask("OffsetFetch", asking(group.id, topic, partitions=1))


@table(
    "OffsetCommit", at=(2, 8, 10),
    old_generation=({"generation_id_or_member_epoch": 0},), no_generation=({"generation_id_or_member_epoch": -1},),
    unknown_member=({"member_id": "nobody"},),
    nobody=({"member_id": "", "generation_id_or_member_epoch": -1},),
    unknown_instance=({"group_instance_id": "nobody"},),
)  # fmt: skip
def commit_that_cannot_be(stage: Stage, more: dict[str, Plain]) -> None:
    topic, group = stage.topic(), Group(stage)
    joined = group.stable()
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    group.ask("OffsetCommit", committing(topic, 5, **{**who, **more}))


@table(
    "OffsetCommit", at=(3, 8, 9, 10),
    generation=({"generation_id_or_member_epoch": 1, "member_id": "nobody"},), member=({"member_id": "nobody"},),
)  # fmt: skip
def commit_in_a_group_that_is_not_there(stage: Stage, more: dict[str, Plain]) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("OffsetCommit", committing(topic, 5, **more))


@table("OffsetCommit", at=(2, 9, 10), longest=(4096,), too_long=(4097,), none=(None,))
def commit_with_metadata(stage: Stage, size: int | None) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("OffsetCommit", committing(topic, 5, metadata=None if size is None else "x" * size))
    said = group.do("OffsetFetch", asking(group.id, topic, partitions=1))
    (row,) = said["groups"][0]["topics"][0]["partitions"]
    stage.note("its metadata", len(row["metadata"]))


@scenario("OffsetCommit", at=(2, 6, 9))
def commit_where_there_is_nothing(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("OffsetCommit", committing(Topic("absent", UNKNOWN_ID), 1, 2))
    group.ask("OffsetCommit", committing(topic, 1, 2))
    group.ask("OffsetFetch", asking(group.id, topic))


@scenario("OffsetCommit", at=(10,))
def commit_with_an_id_that_nobody_has(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    both = committing(topic, 1)
    both["topics"] += committing(Topic("absent", UNKNOWN_ID), 1)["topics"]
    group.ask("OffsetCommit", both)


@scenario("OffsetCommit", at=(2, 9))
def commit_of_nothing(stage: Stage) -> None:
    Group(stage).ask("OffsetCommit", {"member_id": "", "topics": []})


@scenario("OffsetFetch", at=range(1, 11))
def fetched(stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), Group(stage)
    group.do("OffsetCommit", committing(topic, 5))
    group.ask("OffsetFetch", asking(group.id, topic, partitions=3))


@scenario("OffsetFetch", at=(2, 7, 8, 10))
def everything_is_fetched(stage: Stage) -> None:
    topic, other, group = stage.topic(partitions=2), stage.topic("other"), Group(stage)
    group.do("OffsetCommit", committing(topic, 5, 6))
    group.do("OffsetCommit", committing(other, 7))
    group.ask("OffsetFetch", asking(group.id))


@scenario("OffsetFetch", at=(1, 2, 7, 8, 10))
def fetched_from_a_group_that_is_not_there(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("OffsetFetch", asking(group.id, topic))


@scenario("OffsetFetch", at=(1, 7, 9))
def fetched_where_there_is_nothing(stage: Stage) -> None:
    group = Group(stage)
    group.ask("OffsetFetch", asking(group.id, Topic("absent", UNKNOWN_ID)))


@scenario("OffsetFetch", at=(10,))
def fetched_with_an_id_that_nobody_has(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    group.do("OffsetCommit", committing(topic, 5))
    group.ask("OffsetFetch", asking(group.id, topic, Topic("absent", UNKNOWN_ID)))


@scenario("OffsetFetch", at=(8, 9, 10))
def fetched_from_several_groups(stage: Stage) -> None:
    topic, one, two = stage.topic(), Group(stage, "one"), Group(stage, "two")
    one.do("OffsetCommit", committing(topic, 5))
    two.do("OffsetCommit", committing(topic, 6))
    groups = [asking(group, topic)["groups"][0] for group in (one.id, two.id, stage.name("three"))]
    one.ask("OffsetFetch", {"groups": groups, "require_stable": True})


@scenario("OffsetFetch", at=(7, 9))
def fetched_in_the_group_without_a_name(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("OffsetFetch", {**asking("", topic), "group_id": ""})


@scenario("OffsetDelete")
def offsets_are_deleted(stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), Group(stage)
    group.do("OffsetCommit", committing(topic, 5, 6))
    rows = [
        {"name": topic.name, "partitions": [{"partition_index": 0}, {"partition_index": 9}]},
        {"name": "absent", "partitions": [{"partition_index": 0}]},
    ]
    group.ask("OffsetDelete", {"topics": rows})
    group.ask("OffsetFetch", asking(group.id, topic))


@scenario("OffsetDelete")
def offsets_of_a_group_that_is_not_there(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("OffsetDelete", {"topics": [{"name": topic.name, "partitions": [{"partition_index": 0}]}]})


@table("OffsetDelete", consumers=("consumer",), others=("kind",))
def offsets_of_a_group_with_members(stage: Stage, kind: str) -> None:
    topic, other, group = stage.topic(), stage.topic("other"), Group(stage)
    metadata = SUBSCRIPTION + len(topic.name).to_bytes(2) + topic.name.encode() + bytes(4)
    joined = group.join(kind=kind, protocols=(("range", metadata),))
    group.do("SyncGroup", {**group.syncing(joined, b""), "protocol_type": kind})
    rows = [{"name": name, "partitions": [{"partition_index": 0}]} for name in (topic.name, other.name)]
    group.ask("OffsetDelete", {"topics": rows})
