"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what is told of groups."""

from __future__ import annotations

from ..grouped import PROTOCOLS, Group
from ..messages import Plain
from ..scenario import Stage, scenario, table

NOBODY = {"member_id": "nobody", "generation_id": 1}


@scenario("JoinGroup", at=range(10))
def alone(stage: Stage) -> None:
    group = Group(stage)
    said = group.ask("JoinGroup", group.joining())
    if said["error_code"] == "MEMBER_ID_REQUIRED":
        group.ask("JoinGroup", group.joining(said["member_id"]))


@table(
    "JoinGroup", at=(2, 5, 9),
    short_session=({"session": 5_999},), long_session=({"session": 1_800_001},), no_protocols=({"protocols": ()},),
    no_type=({"kind": ""},), unknown_member=({"member": "nobody"},),
)  # fmt: skip
def join_that_cannot_be(stage: Stage, more: dict[str, Plain]) -> None:
    group = Group(stage)
    group.ask("JoinGroup", group.joining(**more))


@table(
    "JoinGroup", at=(3, 7, 9),
    unknown_member=({"member": "nobody"},), other_type=({"kind": "other"},),
    other_protocols=({"protocols": (("none", b""),)},), unknown_instance=({"member": "nobody", "instance": "nobody"},),
)  # fmt: skip
def join_that_cannot_be_where_there_are_members(stage: Stage, more: dict[str, Plain]) -> None:
    group = Group(stage)
    joined = group.stable()
    group.ask("JoinGroup", group.joining(**more))
    group.ask("Heartbeat", group.alive(joined))


@scenario("JoinGroup", at=(1, 5, 9))
def without_a_group(stage: Stage) -> None:
    group = Group(stage)
    group.ask("JoinGroup", {**group.joining(), "group_id": ""})


@scenario("JoinGroup", at=(0, 3, 4, 6, 9))
def two_members(stage: Stage) -> None:
    group = Group(stage)
    one = group.stable()
    two = group.join_later(version=stage.version("JoinGroup"))
    two.waits()
    group.ask("Heartbeat", group.alive(one))
    again = group.ask("JoinGroup", group.joining(one["member_id"]))
    other = two.answer()
    group.ask("SyncGroup", group.syncing(again, b"one", b"two"))
    group.ask("SyncGroup", {**group.syncing(other), "assignments": []})


@scenario("JoinGroup", at=(5, 9))
def member_that_does_not_join_again(stage: Stage) -> None:
    group = Group(stage)
    one = group.stable(rebalance=2_000)
    two = group.join_later(rebalance=2_000)
    group.await_rebalance(one)
    two.waits()
    stage.brokers.elapse(2.1)
    two.answer()
    group.ask("Heartbeat", group.alive(one))


@scenario("JoinGroup", at=(2, 9))
def follower_that_joins_again_with_nothing_new(stage: Stage) -> None:
    group = Group(stage)
    one = group.stable()
    two = group.join_later()
    group.await_rebalance(one)
    one = group.join(one["member_id"])
    other = two.answer()
    group.ask("JoinGroup", group.joining(other["member_id"]))
    group.sync(one, b"one", b"two")
    group.ask("JoinGroup", group.joining(other["member_id"]))
    group.ask("Heartbeat", group.alive(one))


@scenario("JoinGroup", at=(2, 9))
def leader_that_joins_again(stage: Stage) -> None:
    group = Group(stage)
    one = group.join()
    group.ask("JoinGroup", group.joining(one["member_id"]))
    group.sync(one, b"assignment")
    group.ask("JoinGroup", group.joining(one["member_id"]))
    group.ask("JoinGroup", group.joining(one["member_id"], protocols=PROTOCOLS[:1]))


@scenario("JoinGroup", at=(5, 7, 9))
def static_member_that_comes_back(stage: Stage) -> None:
    group = Group(stage)
    first = group.ask("JoinGroup", group.joining(instance="pod"))
    group.sync(first, b"assignment")
    back = group.ask("JoinGroup", group.joining(instance="pod"))
    group.ask("Heartbeat", {**group.alive(first), "group_instance_id": "pod"})
    group.ask("Heartbeat", {**group.alive(back), "group_instance_id": "pod"})
    group.ask("SyncGroup", {**group.syncing(back), "protocol_name": "range"})
    group.ask("DescribeGroups", {"groups": [group.id]})


@scenario("JoinGroup", at=(5, 9))
def static_member_that_comes_back_with_other_protocols(stage: Stage) -> None:
    group = Group(stage)
    first = group.ask("JoinGroup", group.joining(instance="pod"))
    group.sync(first, b"assignment")
    group.ask("JoinGroup", group.joining(instance="pod", protocols=PROTOCOLS[1:]))


@scenario("JoinGroup", at=(5, 9))
def static_member_whose_place_is_taken_while_it_waits(stage: Stage) -> None:
    group = Group(stage)
    one = group.stable()
    group.join_later(instance="pod").waits()
    group.await_rebalance(one)
    later = group.join_later(instance="pod")
    later.waits()
    group.join(one["member_id"])
    later.answer()


@scenario("SyncGroup", at=range(6))
def leader_syncs(stage: Stage) -> None:
    group = Group(stage)
    joined = group.join()
    group.ask("SyncGroup", group.syncing(joined, b"assignment"))
    group.ask("SyncGroup", group.syncing(joined))


@table(
    "SyncGroup", at=(0, 3, 5),
    old_generation=({"generation_id": 0},), next_generation=({"generation_id": 2},),
    unknown_member=({"member_id": "nobody"},), no_member=({"member_id": ""},),
    other_type=({"protocol_type": "other"},), other_protocol=({"protocol_name": "other"},),
    no_type=({"protocol_type": None},), no_protocol=({"protocol_name": None},),
    unknown_instance=({"group_instance_id": "nobody"},), no_group=({"group_id": ""},),
)  # fmt: skip
def sync_that_cannot_be(stage: Stage, more: dict[str, Plain]) -> None:
    group = Group(stage)
    joined = group.join()
    group.ask("SyncGroup", {**group.syncing(joined, b"assignment"), **more})
    group.ask("Heartbeat", group.alive(joined))


@scenario("SyncGroup", at=(2, 5))
def sync_of_a_group_that_is_not_there(stage: Stage) -> None:
    Group(stage).ask("SyncGroup", {**NOBODY, "assignments": []})


@scenario("SyncGroup", at=(2, 5))
def sync_while_others_join(stage: Stage) -> None:
    group = Group(stage)
    one = group.stable()
    group.join_later().waits()
    group.await_rebalance(one)
    group.ask("SyncGroup", group.syncing(one))


@scenario("SyncGroup", at=(3, 5))
def sync_that_another_rebalance_ends(stage: Stage) -> None:
    group = Group(stage)
    one = group.stable()
    two = group.join_later()
    group.await_rebalance(one)
    one = group.join(one["member_id"])
    other = two.answer()
    waiting = stage.later("SyncGroup", group.body({**group.syncing(other), "assignments": []}), to=group.node)
    waiting.waits()
    group.do("LeaveGroup", {"members": [{"member_id": one["member_id"]}]})
    waiting.answer()


@scenario("SyncGroup", at=(5,))
def member_that_does_not_sync(stage: Stage) -> None:
    group = Group(stage)
    joined = group.join(rebalance=2_000)
    stage.brokers.elapse(2.1)
    stage.until(lambda: group.do("Heartbeat", group.alive(joined))["error_code"] != "NONE", "its end")
    group.ask("SyncGroup", group.syncing(joined, b"assignment"))
    group.ask("DescribeGroups", {"groups": [group.id]})


@scenario("Heartbeat", at=range(5))
def heartbeats(stage: Stage) -> None:
    group = Group(stage)
    joined = group.join()
    group.ask("Heartbeat", group.alive(joined))
    group.sync(joined, b"assignment")
    group.ask("Heartbeat", group.alive(joined))


@table(
    "Heartbeat", at=(0, 3, 4),
    old_generation=({"generation_id": 0},), no_generation=({"generation_id": -1},),
    unknown_member=({"member_id": "nobody"},), no_member=({"member_id": ""},),
    unknown_instance=({"group_instance_id": "nobody"},), no_group=({"group_id": ""},),
    other_group=({"group_id": "a group that nobody has"},),
)  # fmt: skip
def heartbeat_that_cannot_be(stage: Stage, more: dict[str, Plain]) -> None:
    group = Group(stage)
    group.ask("Heartbeat", {**group.alive(group.stable()), **more})


@scenario("Heartbeat", at=(0, 4))
def heartbeat_of_who_has_left(stage: Stage) -> None:
    group = Group(stage)
    joined = group.stable()
    group.do("LeaveGroup", {"members": [{"member_id": joined["member_id"]}]})
    group.ask("Heartbeat", group.alive(joined))


@scenario("Heartbeat", at=(4,))
def silent_member(stage: Stage) -> None:
    group = Group(stage)
    joined = group.stable(session=6_000)
    stage.brokers.elapse(5.5)
    group.ask("Heartbeat", group.alive(joined))
    stage.brokers.elapse(6.2)
    group.ask("Heartbeat", group.alive(joined))
    group.ask("DescribeGroups", {"groups": [group.id]})


@scenario("LeaveGroup", at=range(6))
def leaves(stage: Stage) -> None:
    group = Group(stage)
    joined = group.stable()
    who = {"member_id": joined["member_id"], "members": [{"member_id": joined["member_id"]}]}
    group.ask("LeaveGroup", who)
    group.ask("LeaveGroup", who)
    group.ask("DescribeGroups", {"groups": [group.id]})


@table(
    "LeaveGroup", at=(1, 3, 5),
    unknown_member=({},), no_group=({"group_id": ""},), other_group=({"group_id": "a group that nobody has"},),
)  # fmt: skip
def leaving_that_cannot_be(stage: Stage, more: dict[str, Plain]) -> None:
    group = Group(stage)
    group.stable()
    group.ask("LeaveGroup", {"member_id": "nobody", "members": [{"member_id": "nobody"}], **more})


@scenario("LeaveGroup", at=(3, 4, 5))
def static_members_are_put_out(stage: Stage) -> None:
    group = Group(stage)
    joined = group.stable("pod")
    group.ask(
        "LeaveGroup",
        {
            "members": [
                {"member_id": "nobody", "group_instance_id": "pod"},
                {"member_id": "", "group_instance_id": "none"},
                {"member_id": "", "group_instance_id": "pod"},
                {"member_id": "", "group_instance_id": None},
            ]
        },
    )
    group.ask("Heartbeat", group.alive(joined))


@scenario("LeaveGroup", at=(3, 5))
def nobody_leaves(stage: Stage) -> None:
    Group(stage).ask("LeaveGroup", {"members": []})


@scenario("LeaveGroup", at=(5,))
def who_was_given_an_id_leaves(stage: Stage) -> None:
    group = Group(stage)
    given = group.ask("JoinGroup", group.joining())["member_id"]
    group.ask("LeaveGroup", {"members": [{"member_id": given}]})
    group.ask("JoinGroup", group.joining(given))


@scenario("DescribeGroups", at=range(7))
def described_when_stable(stage: Stage) -> None:
    group = Group(stage)
    group.stable()
    group.ask("DescribeGroups", {"groups": [group.id]})


@scenario("DescribeGroups", at=(0, 4, 6))
def described_in_every_state(stage: Stage) -> None:
    group = Group(stage)
    group.ask("DescribeGroups", {"groups": [group.id]})
    one = group.join()
    group.await_known()
    group.ask("DescribeGroups", {"groups": [group.id]})
    group.sync(one, b"assignment")
    two = group.join_later()
    two.waits()
    group.await_rebalance(one)
    said = group.do("DescribeGroups", {"groups": [group.id]}, stage.version("DescribeGroups"))["groups"][0]
    said["members"] = len(said["members"])
    stage.note("while members join", said)
    group.do("LeaveGroup", {"members": [{"member_id": one["member_id"]}]})
    joined = two.answer()
    group.do("LeaveGroup", {"members": [{"member_id": joined["member_id"]}]})
    group.ask("DescribeGroups", {"groups": [group.id]})


@scenario("DescribeGroups", at=(3, 6))
def described_with_what_is_allowed(stage: Stage) -> None:
    group = Group(stage)
    group.stable()
    group.ask("DescribeGroups", {"groups": [group.id, "", "none"], "include_authorized_operations": True})


@table(
    "ListGroups", at=(3, 4, 5),
    all=({},), stable=({"states_filter": ["stable"]},), empty=({"states_filter": ["Empty", "Dead"]},),
    unknown_state=({"states_filter": ["none"]},), classic=({"types_filter": ["Classic"]},),
    consumer=({"types_filter": ["consumer"]},), unknown_type=({"types_filter": ["none"]},),
)  # fmt: skip
def listed(stage: Stage, filters: dict[str, Plain]) -> None:
    group = Group(stage)
    group.stable()
    said = group.do("ListGroups", filters, stage.version("ListGroups"))
    said["groups"] = [row for row in said["groups"] if row["group_id"] == group.id]
    stage.note("listed", said)


@scenario("DeleteGroups", at=(0, 1, 2))
def deleted(stage: Stage) -> None:
    group, used = Group(stage, "empty"), Group(stage, "used")
    joined = group.stable()
    used.stable()
    group.do("LeaveGroup", {"members": [{"member_id": joined["member_id"]}]})
    group.ask("DeleteGroups", {"groups_names": [group.id, used.id, "none", ""]})
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    group.ask("DescribeGroups", {"groups": [group.id]})
