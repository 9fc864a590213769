"""Groups that change their protocol while members are there, and members of both protocols in one group."""

from __future__ import annotations

from collections.abc import Sequence

from abeyant.broker.groups.subscription import assignment_value, read_assignment

from ..grouped import Group
from ..messages import Plain
from ..scenario import Stage, Topic, scenario, table
from .consumer_groups import await_given, beat, count, given
from .offsets import committing

BOTH = (0, 1)
RANGE = "range"


def subscription(topic: Topic, owned: Sequence[int] | None = None) -> bytes:
    """What a consumer says of itself: in version 1 where it tells what it has."""
    name = len(topic.name).to_bytes(2, "big") + topic.name.encode()
    version = b"\0\0" if owned is None else b"\0\1"
    said = version + b"\0\0\0\1" + name + b"\xff\xff\xff\xff"
    if owned is None:
        return said
    indexes = b"".join(index.to_bytes(4, "big") for index in owned)
    rows = b"\0\0\0\1" + name + len(owned).to_bytes(4, "big") + indexes if owned else b"\0\0\0\0"
    return said + rows


def consumer(topic: Topic, owned: Sequence[int] | None = None, name: str = RANGE) -> dict[str, Plain]:
    """How a consumer of the classic protocol joins."""
    return {"kind": "consumer", "protocols": ((name, subscription(topic, owned)),)}


def syncing(joined: dict[str, Plain], **more: Plain) -> dict[str, Plain]:
    """What a follower says in a SyncGroup."""
    return {
        "generation_id": joined["generation_id"], "member_id": joined["member_id"], "protocol_type": "consumer",
        "protocol_name": RANGE, "assignments": [], **more,
    }  # fmt: skip


def synced(stage: Stage, group: Group, joined: dict[str, Plain], **more: Plain) -> list[int]:
    """Sync, and write down which partitions the member has."""
    said = group.do("SyncGroup", syncing(joined, **more))
    indexes: list[int] = []
    if said["error_code"] == "NONE":
        indexes = sorted(index for _, index in read_assignment(said["assignment"])[0])
    stage.note("synced", [said["error_code"], said["protocol_type"], said["protocol_name"], len(indexes)])
    return indexes


def classic(
    stage: Stage, owned: Sequence[int] | None = None, assignment: bytes | None = None, **more: Plain
) -> tuple[Group, Topic, dict[str, Plain]]:
    """A stable classic group with one consumer that has all of a topic, and what it was told when it joined."""
    topic, group = stage.topic(partitions=2), Group(stage)
    joined = group.join(**{**consumer(topic, owned), **more})
    if assignment is None:
        assignment = assignment_value(1, [(topic.name, index) for index in BOTH])
    group.do("SyncGroup", {**group.syncing(joined, assignment), "protocol_type": joined["protocol_type"]})
    return group, topic, joined


def mixed(stage: Stage, owned: Sequence[int] | None = None) -> tuple[Group, Topic, dict[str, Plain], dict[str, Plain]]:
    """A group with a consumer of each protocol that have one partition each; what each was told last."""
    group, topic, joined = classic(stage, owned)
    member = joined["member_id"]
    new = group.do("ConsumerGroupHeartbeat", beat(topic))
    group.await_rebalance(joined)
    joined = group.do("JoinGroup", group.joining(member, **consumer(topic, () if owned is None else BOTH)))
    indexes = synced(stage, group, joined)
    if owned is not None:
        group.await_rebalance(joined)
        joined = group.do("JoinGroup", group.joining(member, **consumer(topic, indexes)))
        synced(stage, group, joined)
    new = await_given(stage, group, epoch=new["member_epoch"])
    return group, topic, joined, new


def describe(stage: Stage, group: Group) -> None:
    """Write down what is told of the group, with numbers in place of partitions."""
    (told,) = group.do("ConsumerGroupDescribe", {"group_ids": [group.id]})["groups"]
    for member in told["members"]:
        for what in ("assignment", "target_assignment"):
            member[what] = sum(len(row["partitions"]) for row in member[what]["topic_partitions"])
    stage.note("described", told)
    (told,) = group.do("DescribeGroups", {"groups": [group.id]})["groups"]
    for member in told["members"]:
        member["member_assignment"] = len(read_assignment(member["member_assignment"])[0])
        member["member_metadata"] = len(member["member_metadata"]) > 0
    stage.note("described as classic", told)


@scenario()
def upgraded(stage: Stage) -> None:
    group, topic, joined = classic(stage)
    said = group.do("ConsumerGroupHeartbeat", beat(topic))
    stage.note("joins", [said["error_code"], said["member_epoch"], given(said)])
    describe(stage, group)
    group.ask("Heartbeat", group.alive(joined))
    again = group.ask("JoinGroup", group.joining(joined["member_id"], **consumer(topic)))
    synced(stage, group, again)
    group.ask("Heartbeat", group.alive(again))
    stage.note("gets", count(await_given(stage, group, epoch=said["member_epoch"])))
    describe(stage, group)
    listed = group.do("ListGroups", {"types_filter": ["consumer"]})
    stage.note("listed", [row for row in listed["groups"] if row["group_id"] == group.id])


@scenario()
def upgraded_with_a_member_that_keeps_what_it_may(stage: Stage) -> None:
    group, topic, joined = classic(stage, ())
    new = group.do("ConsumerGroupHeartbeat", beat(topic))
    again = group.ask("JoinGroup", group.joining(joined["member_id"], **consumer(topic, BOTH)))
    kept = synced(stage, group, again)
    group.ask("Heartbeat", group.alive(again))
    describe(stage, group)
    waits = group.do("ConsumerGroupHeartbeat", beat(None, epoch=new["member_epoch"]))
    stage.note("waits", [waits["member_epoch"], given(waits)])
    last = group.ask("JoinGroup", group.joining(joined["member_id"], **consumer(topic, kept)))
    synced(stage, group, last)
    group.ask("Heartbeat", group.alive(last))
    stage.note("gets", count(await_given(stage, group, epoch=new["member_epoch"])))
    describe(stage, group)


@table(
    other_type=({"kind": "kind"}, None), no_subscription=({"protocols": ((RANGE, b"no"),)}, None),
    negative_version=({"protocols": ((RANGE, b"\xff\xff\0\0\0\0\0\0\0\0"),)}, None),
    no_assignment=({}, b"no"), nothing_assigned=({}, b""),
    assignor_of_ones_own=({}, assignment_value(1, [])[:-4] + b"\0\0\0\1x"),
    empty_words_of_ones_own=({}, assignment_value(1, [])[:-4] + b"\0\0\0\0"),
    later_version=({}, b"\0\x09" + assignment_value(1, [])[2:]),
)  # fmt: skip
def upgrade(stage: Stage, more: dict[str, Plain], assignment: bytes | None) -> None:
    group, topic, joined = classic(stage, None, assignment, **more)
    said = group.do("ConsumerGroupHeartbeat", beat(topic))
    message = said["error_message"]
    stage.note("joins", [said["error_code"], message, said["member_epoch"]])
    (told,) = group.do("DescribeGroups", {"groups": [group.id]})["groups"]
    stage.note("then", [told["error_code"], told["group_state"]])
    group.ask("Heartbeat", group.alive(joined))


@scenario("JoinGroup", at=(5, 9))
def upgraded_while_one_waits_to_join(stage: Stage) -> None:
    group, topic, joined = classic(stage)
    second = group.join_later(version=stage.version("JoinGroup"), **consumer(topic))
    group.await_rebalance(joined)
    said = group.do("ConsumerGroupHeartbeat", beat(topic))
    stage.note("joins", [said["error_code"], said["member_epoch"]])
    second.answer()
    (told,) = group.do("ConsumerGroupDescribe", {"group_ids": [group.id]})["groups"]
    stage.note("members", [len(told["members"]), told["group_epoch"]])


@scenario("SyncGroup", at=(3, 5))
def upgraded_while_one_waits_for_its_part(stage: Stage) -> None:
    group, topic, joined = classic(stage)
    second = group.join_later(**consumer(topic))
    group.await_rebalance(joined)
    group.do("JoinGroup", group.joining(joined["member_id"], **consumer(topic)))
    told = second.receive()
    waits = stage.later("SyncGroup", group.body(syncing(told)), to=group.node)
    waits.waits()
    said = group.do("ConsumerGroupHeartbeat", beat(topic))
    stage.note("joins", [said["error_code"], said["member_epoch"]])
    waits.answer()


@table(
    "JoinGroup", at=(3, 5, 9),
    right=({},), other_type=({"kind": "kind"},), no_protocols=({"protocols": ()},),
    other_protocol=({"name": "other"},), no_subscription=({"protocols": ((RANGE, b""),)},),
    unknown_member=({"member": "nobody"},), one_of_the_new_protocol=({"member": "one"},),
    unknown_instance=({"member": "nobody", "instance": "nobody"},), new_instance=({"instance": "pod"},),
)  # fmt: skip
def join_of_a_group_with_both(stage: Stage, more: dict[str, Plain]) -> None:
    group, topic, _, _ = mixed(stage)
    told = {**consumer(topic, name=more.get("name", RANGE)), **more}
    told.pop("name", None)
    said = group.do("JoinGroup", group.joining(**told), stage.version("JoinGroup"))
    if "member_id" in said and said["member_id"] not in ("", "nobody", "one"):
        said["member_id"] = "an id"  # genuine Kafka's are of another kind here
    stage.note("joins", said)
    (described,) = group.do("ConsumerGroupDescribe", {"group_ids": [group.id]})["groups"]
    stage.note("members", [len(described["members"]), described["group_epoch"]])


@table(
    "SyncGroup", at=(3, 5),
    right=({},), older_generation=({"generation_id": 1},), later_generation=({"generation_id": 9},),
    unknown_member=({"member_id": "nobody"},), one_of_the_new_protocol=({"member_id": "one"},),
    other_type=({"protocol_type": "kind"},), other_name=({"protocol_name": "other"},),
    unknown_instance=({"group_instance_id": "nobody"},),
)  # fmt: skip
def sync_in_a_group_with_both(stage: Stage, more: dict[str, Plain]) -> None:
    group, _, joined, _ = mixed(stage)
    said = group.do("SyncGroup", syncing(joined, **more), stage.version("SyncGroup"))
    said["assignment"] = len(said["assignment"])
    stage.note("synced", {name: value for name, value in said.items() if name != "assignment"})


@table(
    "Heartbeat", at=(1, 4),
    right=({},), older_generation=({"generation_id": 1},), later_generation=({"generation_id": 9},),
    unknown_member=({"member_id": "nobody"},), one_of_the_new_protocol=({"member_id": "one"},),
    unknown_instance=({"group_instance_id": "nobody"},),
)  # fmt: skip
def heartbeat_in_a_group_with_both(stage: Stage, more: dict[str, Plain]) -> None:
    group, _, joined, _ = mixed(stage)
    group.ask("Heartbeat", {**group.alive(joined), **more})


@table(
    "OffsetCommit", at=(7, 8, 9),
    right=({},), older_generation=({"generation_id_or_member_epoch": 1},),
    first=({"generation_id_or_member_epoch": 0},),
    later_generation=({"generation_id_or_member_epoch": 9},), unknown_member=({"member_id": "nobody"},),
    one_of_the_new_protocol=({"member_id": "one"},), nobody=({"member_id": "", "generation_id_or_member_epoch": -1},),
)  # fmt: skip
def commit_in_a_group_with_both(stage: Stage, more: dict[str, Plain]) -> None:
    group, topic, joined, new = mixed(stage)
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    (row,) = new["assignment"]["topic_partitions"]
    (other,) = row["partitions"]
    for index in (1 - other, other):
        body = committing(topic, 5, **{**who, **more})
        body["topics"][0]["partitions"][0]["partition_index"] = index
        group.ask("OffsetCommit", body)


@scenario("OffsetCommit", at=(9,))
def commit_of_what_one_has_had_for_long(stage: Stage) -> None:
    """KIP-1251: an older epoch will do for a partition that the member has had since then."""
    group, topic, joined, new = mixed(stage)
    (row,) = new["assignment"]["topic_partitions"]
    mine = 1 - row["partitions"][0]
    for generation in (1, 2):
        body = committing(topic, 5, member_id=joined["member_id"], generation_id_or_member_epoch=generation)
        body["topics"][0]["partitions"][0]["partition_index"] = mine
        group.ask("OffsetCommit", body)
    group.do("ConsumerGroupHeartbeat", beat(topic, "two"))
    stage.until(
        lambda: group.do("ConsumerGroupHeartbeat", beat(None, epoch=new["member_epoch"]))["member_epoch"] == 3,
        "an epoch",
    )
    body = committing(topic, 5, member_id="one", generation_id_or_member_epoch=2)
    body["topics"][0]["partitions"][0]["partition_index"] = 1 - mine
    group.ask("OffsetCommit", body)


@table(
    "OffsetFetch", at=(9,),
    right=({},), older_generation=({"member_epoch": 1},), unknown_member=({"member_id": "nobody"},),
)  # fmt: skip
def fetch_in_a_group_with_both(stage: Stage, more: dict[str, Plain]) -> None:
    group, topic, joined, _ = mixed(stage)
    who = {"member_id": joined["member_id"], "member_epoch": joined["generation_id"], **more}
    asked = {"group_id": group.id, "topics": [{"name": topic.name, "partition_indexes": [0]}], **who}
    group.stage.note("fetched", group.do("OffsetFetch", {"groups": [asked], "require_stable": False}, 9))


@scenario("LeaveGroup", at=(1, 3, 5))
def classic_member_leaves(stage: Stage) -> None:
    group, _, joined, new = mixed(stage)
    version = stage.version("LeaveGroup")
    who = {"member_id": joined["member_id"]}
    group.ask("LeaveGroup", who if version < 3 else {"members": [who, {"member_id": "nobody"}]})
    stage.note("gets all", count(await_given(stage, group, epoch=new["member_epoch"])))
    describe(stage, group)


@table(by_itself=(True,), put_out=(False,))
def downgraded(stage: Stage, by_itself: bool) -> None:
    group, topic, joined, new = mixed(stage)
    if by_itself:
        group.ask("ConsumerGroupHeartbeat", beat(None, epoch=-1))
    else:
        group.ask("LeaveGroup", {"members": [{"member_id": "one"}]})
    (told,) = group.do("DescribeGroups", {"groups": [group.id]})["groups"]
    stage.note("then", [told["error_code"], told["group_state"], len(told["members"])])
    group.ask("Heartbeat", group.alive(joined))
    again = group.do("JoinGroup", group.joining(joined["member_id"], **consumer(topic)))
    stage.note("joins again", {name: value for name, value in again.items() if name != "members"})
    assignment = assignment_value(1, [(topic.name, index) for index in BOTH])
    group.do("SyncGroup", {**group.syncing(again, assignment), "protocol_type": "consumer"})
    describe(stage, group)
    said = group.do("ConsumerGroupHeartbeat", beat(None, epoch=new["member_epoch"]))
    stage.note("the one that left", [said["error_code"], said["error_message"]])
    said = group.do("ConsumerGroupHeartbeat", beat(topic, "two"))
    stage.note("upgraded again", [said["error_code"], said["member_epoch"]])


@scenario("JoinGroup", at=(5, 9))
def static_member_comes_back_with_the_classic_protocol(stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), Group(stage)
    said = group.do("ConsumerGroupHeartbeat", beat(topic, instance_id="pod"))
    if not given(said):
        await_given(stage, group, epoch=said["member_epoch"], instance_id="pod")
    joined = group.do("JoinGroup", group.joining(instance="pod", **consumer(topic)), stage.version("JoinGroup"))
    stage.note("joined", [joined["error_code"], joined["generation_id"], joined["protocol_name"], joined["leader"]])
    synced(stage, group, joined)
    (told,) = group.do("DescribeGroups", {"groups": [group.id]})["groups"]
    stage.note("then", [told["error_code"], told["group_state"], len(told["members"])])
    group.ask("Heartbeat", {**group.alive(joined), "group_instance_id": "pod"})
    said = group.do("ConsumerGroupHeartbeat", beat(None, epoch=said["member_epoch"], instance_id="pod"))
    stage.note("the one before", [said["error_code"]])


@scenario("ConsumerGroupHeartbeat", at=(1,))
def static_member_comes_back_with_the_new_protocol(stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), Group(stage)
    joined = group.join(instance="pod", **consumer(topic))
    assignment = assignment_value(1, [(topic.name, index) for index in BOTH])
    body = {**group.syncing(joined, assignment), "protocol_type": "consumer", "group_instance_id": "pod"}
    group.do("SyncGroup", body)
    said = group.do("ConsumerGroupHeartbeat", beat(topic, instance_id="pod"))
    stage.note("joins", [said["error_code"], said["member_epoch"]])
    group.ask("Heartbeat", {**group.alive(joined), "group_instance_id": "pod"})
    describe(stage, group)
