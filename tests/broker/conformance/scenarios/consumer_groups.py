"""Groups of the new protocol (KIP-848): ConsumerGroupHeartbeat, ConsumerGroupDescribe, and their offsets."""

from __future__ import annotations

from functools import partial

from ..grouped import Group
from ..messages import Plain
from ..scenario import Stage, Topic, scenario, table
from .offsets import asking, committing

_FIRST_EPOCH = 2
_TRIES = 5


def beat(topic: Topic | None, member: str = "one", epoch: int = 0, **more: Plain) -> dict[str, Plain]:
    """A heartbeat of a member; with a topic one that tells everything."""
    told: dict[str, Plain] = {
        "member_id": member,
        "member_epoch": epoch,
        "rebalance_timeout": -1,
        "topic_partitions": None,
    }
    if topic is not None:
        told |= {"rebalance_timeout": 60_000, "subscribed_topic_names": [topic.name], "topic_partitions": []}
    return {**told, **more}


def joined(stage: Stage, **more: Plain) -> tuple[Group, Topic]:
    """A group with one member that has all of a topic, in the epoch with which groups begin."""
    topic, group = stage.topic(partitions=2), Group(stage)
    for _ in range(_TRIES):
        said = group.do("ConsumerGroupHeartbeat", beat(topic, **more))
        if not given(said):
            only = {name: value for name, value in more.items() if name == "instance_id"}
            await_given(stage, group, epoch=said["member_epoch"], **only)
        stage.until(partial(written_down, group), "the group")
        if epoch(group) == _FIRST_EPOCH:
            break
        # Genuine Kafka's coordinator learned of the topic after the member had come, and counted one more: begin anew.
        group = Group(stage, group.id)
    return group, topic


def written_down(group: Group) -> bool:
    """Whether the group is told of."""
    return bool(group.do("ConsumerGroupDescribe", {"group_ids": [group.id]})["groups"][0]["error_code"] == "NONE")


def given(said: dict[str, Plain]) -> bool:
    """Whether an answer has partitions."""
    return bool(said["assignment"] is not None and said["assignment"]["topic_partitions"])


def await_given(stage: Stage, group: Group, member: str = "one", epoch: int = 1, **more: Plain) -> dict[str, Plain]:
    """Heartbeats until a member is told what it has: genuine Kafka may take a moment to find out."""
    answers: list[dict[str, Plain]] = []

    def told() -> bool:
        answers.append(group.do("ConsumerGroupHeartbeat", beat(None, member, epoch, **more)))
        return answers[-1]["error_code"] != "NONE" or given(answers[-1])

    stage.until(told, "what it has")
    return answers[-1]


def epoch(group: Group) -> int:
    """The epoch of the group's one member."""
    (described,) = group.do("ConsumerGroupDescribe", {"group_ids": [group.id]})["groups"]
    found: int = described["members"][0]["member_epoch"]
    return found


def count(said: dict[str, Plain]) -> Plain:
    """An answer with the number of partitions in place of which they are."""
    given = said["assignment"]
    if given is not None:
        given = sum(len(row["partitions"]) for row in given["topic_partitions"])
    return {**said, "assignment": given}


@scenario("ConsumerGroupHeartbeat")
def the_first(stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), Group(stage)
    said = group.do("ConsumerGroupHeartbeat", beat(topic), stage.version("ConsumerGroupHeartbeat"))
    stage.note("first", [said["error_code"], said["member_id"], said["member_epoch"], said["heartbeat_interval"]])
    if not given(said):
        await_given(stage, group, epoch=said["member_epoch"])
    group.ask("ConsumerGroupHeartbeat", beat(None, epoch=epoch(group)))
    group.ask("ConsumerGroupHeartbeat", beat(topic, epoch=epoch(group)))


@table(
    "ConsumerGroupHeartbeat",
    no_group=({"group_id": ""},), empty_instance=({"instance_id": ""},), empty_rack=({"rack_id": ""},),
    no_rebalance_timeout=({"rebalance_timeout": -1},), no_partitions=({"topic_partitions": None},),
    no_topics=({"subscribed_topic_names": None},), unknown_assignor=({"server_assignor": "mine"},),
    epoch_that_is_none=({"member_epoch": -3},), away_without_instance=({"member_epoch": -2},),
)  # fmt: skip
def heartbeat_that_cannot_be(stage: Stage, more: dict[str, Plain]) -> None:
    topic, group = stage.topic(), Group(stage)
    group.ask("ConsumerGroupHeartbeat", beat(topic, **more))


@scenario("ConsumerGroupHeartbeat", at=(1,))
def regex_that_is_none(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    said = group.do("ConsumerGroupHeartbeat", beat(topic, subscribed_topic_regex="("))
    stage.note("error", said["error_code"])


@scenario("ConsumerGroupHeartbeat", at=(1,))
def regex_that_matches_an_internal_topic(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    names = f"{topic.name}|__consumer_off.*"
    first = beat(topic, subscribed_topic_names=None, subscribed_topic_regex=names)
    said = group.do("ConsumerGroupHeartbeat", first)
    if not given(said):
        said = await_given(stage, group, epoch=said["member_epoch"])
    stage.note("topics", len(said["assignment"]["topic_partitions"]))


@table(
    "ConsumerGroupHeartbeat",
    larger=({"member_epoch": 5},), unknown_member=({"member_id": "two", "member_epoch": 1},),
    other_group=({"group_id": "a group that nobody has", "member_epoch": 1},),
    unknown_instance=({"member_epoch": 1, "instance_id": "pod"},), leaves=({"member_epoch": -1},),
    leaves_as_nobody=({"member_epoch": -1, "member_id": "two"},),
    leaves_where_nobody_is=({"member_epoch": -1, "group_id": "a group that nobody has"},),
)  # fmt: skip
def next_heartbeat(stage: Stage, more: dict[str, Plain]) -> None:
    group, _ = joined(stage)
    said = group.do("ConsumerGroupHeartbeat", {**beat(None), **more}, stage.version("ConsumerGroupHeartbeat"))
    stage.note("error", [said["error_code"], said["member_id"], said["member_epoch"], said["assignment"]])
    group.ask("ConsumerGroupDescribe", {"group_ids": [group.id]})


@scenario("ConsumerGroupHeartbeat")
def two_members(stage: Stage) -> None:
    group, topic = joined(stage)
    one = group.do("ConsumerGroupHeartbeat", beat(topic, epoch=epoch(group)))
    two = group.do("ConsumerGroupHeartbeat", beat(topic, "two"))
    stage.note("two joins", [one["member_epoch"], two["error_code"], two["member_epoch"], given(two)])
    told = await_given(stage, group, epoch=one["member_epoch"])
    stage.note("one is told", count(told))
    if told["error_code"] != "NONE":
        return
    two = group.do("ConsumerGroupHeartbeat", beat(None, "two", two["member_epoch"]))
    stage.note("two waits", [two["error_code"], two["member_epoch"], given(two)])
    kept = told["assignment"]["topic_partitions"]
    one = group.do("ConsumerGroupHeartbeat", beat(None, epoch=told["member_epoch"], topic_partitions=kept))
    stage.note("one gives back", count(one))
    stage.note("two gets it", count(await_given(stage, group, "two", two["member_epoch"])))
    group.do("ConsumerGroupHeartbeat", beat(None, "two", -1))
    stage.note("one gets all", count(await_given(stage, group, "one", one["member_epoch"])))


@scenario("ConsumerGroupHeartbeat", at=(1,))
def static_member_that_comes_back(stage: Stage) -> None:
    group, topic = joined(stage, instance_id="pod")
    said = group.do("ConsumerGroupHeartbeat", beat(topic, "two", instance_id="pod"))
    stage.note("while it is there", said["error_code"])
    group.ask("ConsumerGroupHeartbeat", beat(None, epoch=-2, instance_id="pod"))
    group.ask("ConsumerGroupHeartbeat", beat(topic, "two", instance_id="pod"))
    said = group.do("ConsumerGroupHeartbeat", beat(None, epoch=1, instance_id="pod"))
    stage.note("the old one", said["error_code"])


@scenario("ConsumerGroupDescribe")
def described(stage: Stage) -> None:
    group, _ = joined(stage, rack_id="rack", instance_id="pod")
    group.ask("ConsumerGroupDescribe", {"group_ids": [group.id, "none"], "include_authorized_operations": True})
    group.do("ConsumerGroupHeartbeat", beat(None, epoch=-1))
    group.ask("ConsumerGroupDescribe", {"group_ids": [group.id]})


@scenario("ConsumerGroupDescribe")
def described_as_what_it_is_not(stage: Stage) -> None:
    group, _ = joined(stage)
    classic = Group(stage, "classic")
    classic.stable()
    classic.await_known()
    group.ask("DescribeGroups", {"groups": [group.id]})
    group.ask("ConsumerGroupDescribe", {"group_ids": [classic.id]})
    said = group.do("ListGroups", {"types_filter": ["consumer"]})
    stage.note("listed", [row for row in said["groups"] if row["group_id"] in (group.id, classic.id)])


@scenario("ConsumerGroupHeartbeat")
def in_a_classic_group(stage: Stage) -> None:
    topic, group = stage.topic(), Group(stage)
    group.stable()
    said = group.do("ConsumerGroupHeartbeat", beat(topic))
    stage.note("error", said["error_code"])


@table(
    "OffsetCommit", at=(2, 8, 9),
    right=({},), old_epoch=({"generation_id_or_member_epoch": 1},), next_epoch=({"generation_id_or_member_epoch": 3},),
    unknown_member=({"member_id": "two"},), nobody=({"member_id": "", "generation_id_or_member_epoch": -1},),
)  # fmt: skip
def committed(stage: Stage, more: dict[str, Plain]) -> None:
    group, topic = joined(stage)
    who = {"member_id": "one", "generation_id_or_member_epoch": 2}
    group.ask("OffsetCommit", committing(topic, 5, **{**who, **more}))


@table(
    "OffsetFetch", at=(9, 10),
    right=({"member_id": "one", "member_epoch": 2},), old_epoch=({"member_id": "one", "member_epoch": 1},),
    unknown_member=({"member_id": "two", "member_epoch": 1},), nobody=({},),
)  # fmt: skip
def fetched(stage: Stage, more: dict[str, Plain]) -> None:
    group, topic = joined(stage)
    body = asking(group.id, topic)
    body["groups"][0] |= more
    group.ask("OffsetFetch", body)


@scenario("DeleteGroups", at=(2,))
def deleted(stage: Stage) -> None:
    group, _ = joined(stage)
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    group.do("ConsumerGroupHeartbeat", beat(None, epoch=-1))
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    group.ask("ConsumerGroupDescribe", {"group_ids": [group.id]})
