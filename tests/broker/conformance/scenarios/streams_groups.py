"""Streams groups (KIP-1071): StreamsGroupHeartbeat, StreamsGroupDescribe, their topics and their offsets."""

from __future__ import annotations

from functools import partial

from ..grouped import Group
from ..messages import Plain
from ..scenario import Stage, Topic, scenario, table
from .consumer_groups import beat as consumer_beat
from .group_settings import setting
from .offsets import asking, committing

API = "StreamsGroupHeartbeat"
_FIRST_EPOCH = 2
_TRIES = 5
Row = dict[str, Plain]


def internal(name: str, partitions: int = 0, **configs: str) -> Row:
    """An internal topic of a topology."""
    return {
        "name": name, "partitions": partitions,
        "topic_configs": [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }  # fmt: skip


def part(name: str, *sources: str, repartitions: Plain = (), changelogs: Plain = (), sinks: Plain = (),
         copartitioned: Plain = ()) -> Row:  # fmt: skip
    """A subtopology."""
    return {
        "subtopology_id": name, "source_topics": list(sources), "repartition_source_topics": list(repartitions),
        "state_changelog_topics": list(changelogs), "repartition_sink_topics": list(sinks),
        "copartition_groups": list(copartitioned),
    }  # fmt: skip


def topology(*parts: Row, epoch: int = 0) -> Row:
    return {"epoch": epoch, "subtopologies": list(parts)}


def counting(stage: Stage, source: str, **more: Plain) -> Row:
    """Of a program that reads one topic and keeps a store of it."""
    return topology(part("0", source, changelogs=[internal(stage.name("store"), cleanup_policy="compact")]), **more)


def joining(wanted: Row | None, member: str = "one", **more: Plain) -> Row:
    """The first heartbeat of a member."""
    none = {"client_tags": None, "task_offsets": None, "task_end_offsets": None}
    given: Row = {"member_id": member, "member_epoch": 0, "rebalance_timeout": 60_000, "topology": wanted,
                  "active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "process_id": f"process of {member}",
                  **none}  # fmt: skip
    return {**given, **more}


def beat(member: str = "one", epoch: int = _FIRST_EPOCH, **more: Plain) -> Row:
    """A heartbeat that tells nothing new."""
    none = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "client_tags", "task_offsets",
                          "task_end_offsets"))  # fmt: skip
    return {"member_id": member, "member_epoch": epoch, **none, **more}


def application(stage: Stage, **settings: str) -> Group:
    """A group that assigns at once."""
    group = Group(stage)
    at_once = {"streams_initial_rebalance_delay_ms": "0", "streams_assignment_interval_ms": "0"}
    setting(stage, group, **at_once, **settings)
    return group


def joined(stage: Stage, **more: Plain) -> tuple[Group, Topic, Row]:
    """A group with one member that has all tasks, in the epoch with which groups begin."""
    topic = stage.topic(partitions=2)
    wanted = counting(stage, topic.name)
    stage.topic("store", partitions=2)
    for number in range(_TRIES):
        group = Group(stage, f"group{number}" if number else "group")
        setting(stage, group, streams_initial_rebalance_delay_ms="0", streams_assignment_interval_ms="0")
        said = group.do(API, joining(wanted, **more))
        if said["member_epoch"] == _FIRST_EPOCH and said["active_tasks"]:
            break  # else genuine Kafka's coordinator learns of the topics later, and counts one more: begin anew
    stage.until(partial(written_down, group), "the group")
    return group, topic, wanted


def written_down(group: Group) -> bool:
    return bool(describe(group)["error_code"] == "NONE")


def describe(group: Group) -> Row:
    found: Row = group.stage.do("StreamsGroupDescribe", {"group_ids": [group.id]}, to=group.node)["groups"][0]
    return found


def tasks(said: Row) -> Plain:
    """How many tasks of each kind an answer has."""
    kinds = ("active_tasks", "standby_tasks", "warmup_tasks")
    return [said[kind] and sum(len(row["partitions"]) for row in said[kind]) for kind in kinds]


def short(said: Row) -> Plain:
    """An answer without what depends on which tasks they are."""
    return [said["error_code"], said["error_message"], said["member_epoch"], said["status"], tasks(said)]


@scenario(API)
def the_first(stage: Stage) -> None:
    group, _, wanted = joined(stage)
    group.ask(API, joining(wanted))
    group.ask(API, beat())
    group.ask(API, beat(active_tasks=[], standby_tasks=[], warmup_tasks=[]))


_SOME = [{"subtopology_id": "0", "partitions": [0]}]
_OFFSET = [{"subtopology_id": "0", "partition": 0, "offset": 1}]


@table(
    API,
    no_group=({"group_id": ""},), no_member=({"member_id": ""},), static=({"instance_id": "pod"},),
    empty_instance=({"instance_id": ""},), empty_rack=({"rack_id": ""},),
    no_rebalance_timeout=({"rebalance_timeout": -1},), active=({"active_tasks": _SOME},),
    no_active=({"active_tasks": None},), standby=({"standby_tasks": _SOME},), no_standby=({"standby_tasks": None},),
    warmup=({"warmup_tasks": _SOME},), no_warmup=({"warmup_tasks": None},), no_topology=({"topology": None},),
    no_tasks=(dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks")),),
    offsets=({"task_offsets": _OFFSET},), end_offsets=({"task_end_offsets": _OFFSET},),
    no_such_epoch=({"member_epoch": -3},), away=({"member_epoch": -2},),
    away_without_topology=({"member_epoch": -2, "topology": None},),
    no_such_epoch_without_topology=({"member_epoch": -3, "topology": None},),
    later=({"member_epoch": 1},), later_without_topology=({"member_epoch": 1, "topology": None},),
    leaves=({"member_epoch": -1, "topology": None},), leaves_static=({"member_epoch": -1, "instance_id": "pod"},),
)  # fmt: skip
def heartbeat_that_cannot_be(stage: Stage, more: Row) -> None:
    topic, group = stage.topic(), application(stage)
    stage.topic("store")
    group.ask(API, {**joining(counting(stage, topic.name)), **more})


@table(
    API,
    internal_topic=(part("0", "__consumer_offsets"),), invalid_topic=(part("0", "a b"),),
    invalid_sink=(part("0", "topic", sinks=["a/b"]),), invalid_store=(part("0", "topic", changelogs=[internal("")]),),
    counted_store=(part("0", "topic", changelogs=[internal("store", 3)]),),
    pattern=({**part("0", "topic"), "source_topic_regex": [".*"]},),
)  # fmt: skip
def topology_that_cannot_be(stage: Stage, one: Row) -> None:
    group = application(stage)
    group.ask(API, joining(topology(one)))


@table(
    API,
    larger=({"member_epoch": 5},), smaller=({"member_epoch": 1},),
    the_one_before=({"member_epoch": 0, "rebalance_timeout": -1},), unknown_member=({"member_id": "two"},),
    other_group=({"group_id": "a group that nobody has"},),
    unknown_subtopology=({"active_tasks": [{"subtopology_id": "9", "partitions": [0]}], "standby_tasks": [],
                          "warmup_tasks": []},),
    unknown_partition=({"active_tasks": [{"subtopology_id": "0", "partitions": [0, 2]}], "standby_tasks": [],
                        "warmup_tasks": []},),
    unknown_standby=({"active_tasks": [], "standby_tasks": [{"subtopology_id": "0", "partitions": [7]}],
                      "warmup_tasks": []},),
    one_kind=({"active_tasks": _SOME},), two_kinds=({"active_tasks": _SOME, "standby_tasks": []},),
    new_rack=({"rack_id": "rack"},), new_process=({"process_id": "another"},),
    new_time_out=({"rebalance_timeout": 5000},),
    new_tags=({"client_tags": [{"key": "zone", "value": "a"}]},),
    new_endpoint=({"user_endpoint": {"host": "here", "port": 80}},),
    leaves=({"member_epoch": -1},), leaves_as_nobody=({"member_epoch": -1, "member_id": "two"},),
    leaves_where_nobody_is=({"member_epoch": -1, "group_id": "a group that nobody has"},),
    leaves_and_shuts_down=({"member_epoch": -1, "shutdown_application": True},),
    shuts_down=({"shutdown_application": True},),
)  # fmt: skip
def next_heartbeat(stage: Stage, more: Row) -> None:
    group, _, _ = joined(stage)
    said = group.do(API, {**beat(), **more}, stage.version(API))
    stage.note("said", [*short(said), said["member_id"], said["heartbeat_interval"]])
    if stage.scenario.name.endswith(("leaves", "rack", "process", "tags", "endpoint")):
        stage.until(lambda: describe(group)["group_epoch"] > _FIRST_EPOCH, "the next epoch")
    group.ask("StreamsGroupDescribe", {"group_ids": [group.id]})


@table(
    one=(("left",), ("right",)), none=((), ("left", "right")), many=((), ("a", "b", "c", "d", "e")),
)  # fmt: skip
def source_topics_missing(stage: Stage, there: tuple[str, ...], missing: tuple[str, ...]) -> None:
    names = [stage.topic(name).name for name in there] + [stage.name(name) for name in missing]
    group = application(stage)
    said = group.do(API, joining(topology(*(part(str(index), name) for index, name in enumerate(names)))))
    (status,) = said["status"]
    stage.note("said", [said["error_code"], status["status_code"], len(status["status_detail"].split(", "))])
    stage.until(partial(written_down, group), "the group")
    group.ask("StreamsGroupDescribe", {"group_ids": [group.id]})


def made(stage: Stage, wanted: Row) -> tuple[Group, Row]:
    """Let a topology's topics be made: the first answer, with the group."""
    group = application(stage)
    first = group.do(API, joining(wanted))
    epoch = first["member_epoch"]
    last = first

    def has_tasks() -> bool:
        nonlocal epoch, last
        last = group.do(API, beat(epoch=epoch))
        epoch = last["member_epoch"]
        return last["error_code"] != "NONE" or bool(last["active_tasks"])

    if not first["active_tasks"]:
        stage.until(has_tasks, "tasks")
    stage.note("tasks", [last["error_code"], last["active_tasks"]])
    return group, first


def shown_topology(group: Group, wanted: Row) -> None:
    """Write down a topology and the partitions of its internal topics."""
    stage = group.stage
    stage.note("topology", describe(group)["topology"])
    infos = [row for one in wanted["subtopologies"] for kind in ("repartition_source_topics", "state_changelog_topics")
             for row in one[kind]]  # fmt: skip
    for name in sorted({row["name"] for row in infos}):
        (found,) = stage.metadata(name)["topics"]
        stage.note("made", [found["error_code"], len(found["partitions"]), found["name"]])


_MISSING = "Internal topics are missing: "  # in any order


@scenario(API)
def internal_topics_are_made(stage: Stage) -> None:
    source, repartition = stage.topic(partitions=3).name, internal(stage.name("repartition"))
    wanted = topology(
        part("0", source, sinks=[repartition["name"]]),
        part("1", repartitions=[repartition], changelogs=[internal(stage.name("store"), cleanup_policy="compact")]),
    )
    group, first = made(stage, wanted)
    (status,) = first["status"]
    names = sorted(status["status_detail"].removeprefix(_MISSING).split(", "))
    stage.note("first", [first["error_code"], first["member_epoch"], status["status_code"], names, tasks(first)])
    shown_topology(group, wanted)


@table(
    widest=((2, 3), 0, ()), counted=((2, 3), 5, ()), with_source=((2,), 0, (0,)),
)  # fmt: skip
def repartition_topic(stage: Stage, counts: tuple[int, ...], fixed: int, joins: tuple[int, ...]) -> None:
    sources = [stage.topic(f"source{index}", partitions=count).name for index, count in enumerate(counts)]
    repartition = internal(stage.name("repartition"), fixed)
    other = stage.topic("other", partitions=4).name if joins else None
    group = [{"source_topics": [0], "source_topic_regex": [], "repartition_source_topics": [0]}] if joins else []
    wanted = topology(
        part("0", *sources, sinks=[repartition["name"]]),
        part("1", *([other] if other else []), repartitions=[repartition], copartitioned=group),
    )
    found, _ = made(stage, wanted)
    shown_topology(found, wanted)


_BOTH = [{"source_topics": [0, 1], "source_topic_regex": [], "repartition_source_topics": []}]
_FIRST = [{"source_topics": [0], "source_topic_regex": [], "repartition_source_topics": [0]}]


def _answered(stage: Stage, wanted: Row) -> None:
    group = application(stage)
    said: Row = {}

    def knows_topics() -> bool:
        nonlocal said
        said = group.do(API, joining(wanted))
        return not any(row["status_code"] == 1 for row in said["status"] or ())

    stage.until(knows_topics, "the topics")
    stage.note("said", [said["error_code"], said["error_message"], said["status"], tasks(said)])


@scenario(API)
def joined_topics_of_other_counts(stage: Stage) -> None:
    left, right = stage.topic("left", partitions=2), stage.topic("right", partitions=3)
    _answered(stage, topology(part("0", left.name, right.name, copartitioned=_BOTH)))


@scenario(API)
def repartition_topic_of_another_count(stage: Stage) -> None:
    left = stage.topic("left", partitions=2)
    repartition = internal(stage.name("repartition"), 5)
    _answered(stage, topology(
        part("0", left.name, sinks=[repartition["name"]]),
        part("1", left.name, repartitions=[repartition], copartitioned=_FIRST),
    ))  # fmt: skip


@scenario(API)
def store_of_another_count(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.topic("store", partitions=5)
    _answered(stage, counting(stage, topic.name))


@scenario(API)
def repartition_topics_in_a_loop(stage: Stage) -> None:
    one, two = internal(stage.name("one")), internal(stage.name("two"))
    _answered(stage, topology(
        part("0", repartitions=[one], sinks=[two["name"]]), part("1", repartitions=[two], sinks=[one["name"]]),
    ))  # fmt: skip


@scenario(API)
def repartition_topic_that_nobody_writes(stage: Stage) -> None:
    topic = stage.topic()
    _answered(stage, topology(part("0", topic.name, repartitions=[internal(stage.name("one"))])))


@scenario(API)
def subtopology_without_sources(stage: Stage) -> None:
    topic = stage.topic()
    stage.topic("store")
    _answered(stage, topology(part("0", topic.name), part("1", changelogs=[internal(stage.name("store"))])))


@table(
    API,
    same=(lambda one: one,), older=(lambda one: {**one, "epoch": 2},), newer=(lambda one: {**one, "epoch": 4},),
    other=(lambda one: {**one, "subtopologies": [{**one["subtopologies"][0], "subtopology_id": "7"}]},),
    older_and_other=(lambda one: {"epoch": 1, "subtopologies": [{**one["subtopologies"][0], "subtopology_id": "7"}]},),
)  # fmt: skip
def topology_of_a_second_member(stage: Stage, change: Plain) -> None:
    topic = stage.topic(partitions=2)
    stage.topic("store", partitions=2)
    wanted = counting(stage, topic.name, epoch=3)
    group, _ = made(stage, wanted)
    said = group.do(API, joining(change(wanted), "two"), stage.version(API))
    stage.note("two", [said["error_code"], said["error_message"], said["status"], tasks(said)])


def give_back(stage: Stage, group: Group, member: str, said: Row) -> Row:
    """Heartbeats that list what the last answer gave."""
    kinds = {kind: said[kind] for kind in ("active_tasks", "standby_tasks", "warmup_tasks")}
    return group.do(API, beat(member, said["member_epoch"], **kinds))


def await_tasks(stage: Stage, group: Group, member: str, epoch: int) -> Row:
    """Heartbeats until a member is told what it has."""
    answers: list[Row] = []

    def told() -> bool:
        answers.append(group.do(API, beat(member, epoch)))
        return answers[-1]["error_code"] != "NONE" or answers[-1]["active_tasks"] is not None

    stage.until(told, "its tasks")
    return answers[-1]


@scenario(API)
def two_members(stage: Stage) -> None:
    group, _, wanted = joined(stage)
    two = group.do(API, joining(wanted, "two"))
    stage.note("two joins", short(two))
    one = await_tasks(stage, group, "one", _FIRST_EPOCH)
    stage.note("one has to revoke", short(one))
    stage.note("two waits", short(group.do(API, beat("two", two["member_epoch"]))))
    stage.note("group", describe(group)["group_state"])
    one = give_back(stage, group, "one", one)
    stage.note("one has revoked", short(one))
    stage.note("two gets it", short(await_tasks(stage, group, "two", two["member_epoch"])))
    group.do(API, beat("two", -1))
    stage.note("one gets all", short(await_tasks(stage, group, "one", one["member_epoch"])))


@table(apart=(("a", "b"),), together=(("a", "a"),))
def standby_tasks(stage: Stage, processes: tuple[str, str]) -> None:
    group, _, wanted = joined(stage, process_id=processes[0])
    setting(stage, group, streams_num_standby_replicas="1")
    two = group.do(API, joining(wanted, "two", process_id=processes[1]))
    one = await_tasks(stage, group, "one", _FIRST_EPOCH)
    one = give_back(stage, group, "one", one)
    stage.note("two", two["error_code"])
    group.do(API, beat("two", two["member_epoch"]))
    targets = [row["target_assignment"] for row in describe(group)["members"]]
    stage.note("targets", sorted(tasks(row) for row in targets))


@scenario(API)
def endpoints(stage: Stage) -> None:
    group, _, wanted = joined(stage, user_endpoint={"host": "one", "port": 80})
    stage.note("one", group.do(API, beat(endpoint_information_epoch=7))["partitions_by_user_endpoint"])
    two = group.do(API, joining(wanted, "two", endpoint_information_epoch=7, user_endpoint={"host": "two", "port": 81}))
    rows = two["partitions_by_user_endpoint"]
    stage.note("two", [[row["user_endpoint"]["port"], len(row["active_partitions"])] for row in rows])


@scenario("StreamsGroupDescribe")
def described(stage: Stage) -> None:
    tags = [{"key": "zone", "value": "a"}]
    group, _, _ = joined(stage, rack_id="rack", client_tags=tags, user_endpoint={"host": "one", "port": 80})
    group.ask("StreamsGroupDescribe", {"group_ids": [group.id, "none", ""], "include_authorized_operations": True})
    group.do(API, beat(epoch=-1))
    stage.until(lambda: describe(group)["group_state"] == "Empty", "an empty group")
    stage.note("empty", describe(group))


@scenario()
def described_as_what_it_is_not(stage: Stage) -> None:
    group, _, _ = joined(stage)
    classic = Group(stage, "classic")
    classic.stable()
    classic.await_known()
    group.ask("DescribeGroups", {"groups": [group.id]})
    group.ask("ConsumerGroupDescribe", {"group_ids": [group.id]})
    stage.note("classic", describe(classic))
    for kinds in (["streams"], ["Streams", "classic"], ["consumer"]):
        said = group.do("ListGroups", {"types_filter": kinds})
        stage.note("listed", [row for row in said["groups"] if row["group_id"] in (group.id, classic.id)])


@scenario()
def members_of_other_protocols(stage: Stage) -> None:
    group, topic, wanted = joined(stage)
    said = group.do("ConsumerGroupHeartbeat", consumer_beat(topic, "two"))
    stage.note("consumer", [said["error_code"], said["error_message"]])
    said = group.do("JoinGroup", group.joining("two"))
    stage.note("classic", said["error_code"])
    other = Group(stage, "classic")
    other.stable()
    said = other.do(API, joining(wanted))
    stage.note("in a classic group", [said["error_code"], said["error_message"]])


@scenario()
def empty_classic_group_becomes_one(stage: Stage) -> None:
    topic, group = stage.topic(), application(stage)
    stage.topic("store")
    group.do("OffsetCommit", committing(topic, 5))
    said = group.do(API, joining(counting(stage, topic.name)))
    stage.note("said", said["error_code"])
    stage.until(partial(written_down, group), "the group")
    group.ask("OffsetFetch", asking(group.id, topic, partitions=1))


@table(
    "OffsetCommit", at=(2, 8, 9, 10),
    right=({},), old_epoch=({"generation_id_or_member_epoch": 1},), next_epoch=({"generation_id_or_member_epoch": 3},),
    unknown_member=({"member_id": "two"},), nobody=({"member_id": "", "generation_id_or_member_epoch": -1},),
)  # fmt: skip
def committed(stage: Stage, more: Row) -> None:
    group, topic, _ = joined(stage)
    who = {"member_id": "one", "generation_id_or_member_epoch": _FIRST_EPOCH}
    group.ask("OffsetCommit", committing(topic, 5, **{**who, **more}))


@scenario("OffsetCommit", at=(9,))
def committed_of_another_topic(stage: Stage) -> None:
    group, _, _ = joined(stage)
    other = stage.topic("other")
    for epoch in (_FIRST_EPOCH, _FIRST_EPOCH - 1):
        group.ask("OffsetCommit", committing(other, 5, member_id="one", generation_id_or_member_epoch=epoch))


@table(
    "OffsetFetch", at=(9, 10),
    right=({"member_id": "one", "member_epoch": 2},), old_epoch=({"member_id": "one", "member_epoch": 1},),
    unknown_member=({"member_id": "two", "member_epoch": 1},), nobody=({},),
)  # fmt: skip
def fetched(stage: Stage, more: Row) -> None:
    group, topic, _ = joined(stage)
    body = asking(group.id, topic)
    body["groups"][0] |= more
    group.ask("OffsetFetch", body)


@scenario("DeleteGroups", at=(2,))
def deleted(stage: Stage) -> None:
    group, topic, _ = joined(stage)
    group.do("OffsetCommit", committing(topic, 5, member_id="one", generation_id_or_member_epoch=_FIRST_EPOCH))
    rows = [{"name": topic.name, "partitions": [{"partition_index": 0}]}]
    group.ask("OffsetDelete", {"topics": rows})
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    group.do(API, beat(epoch=-1))
    stage.until(lambda: describe(group)["group_state"] == "Empty", "an empty group")
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    stage.note("described", describe(group))
