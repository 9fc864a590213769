"""What a user sees of groups and transactions who may not, who may in part, and who may."""

from __future__ import annotations

from contextlib import ExitStack

from ..client import Connection
from ..grouped import Group
from ..messages import Plain
from ..rights import (
    ALL,
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    DELETE,
    DENY,
    DESCRIBE,
    GROUP,
    GROUP_READ,
    GROUP_SEEN,
    IDEMPOTENT_WRITE,
    OTHER_READ,
    OTHER_SEEN,
    PREFIXED,
    READ,
    SEEN,
    TILL,
    TOPIC,
    TOPIC_READ,
    TRANSACTIONAL_ID,
    WRITE,
    Body,
    Guest,
    Make,
    Right,
    Rule,
    both,
    granted,
)
from ..scenario import Stage, scenario, table
from ..settings import ADMIN
from .consumer_groups import beat as consumer_beat
from .offsets import committing
from .share_groups import beat as share_beat
from .streams_groups import internal, topology
from .streams_groups import joining as streams_beat
from .streams_groups import part as subtopology
from .transactions import coordinated


def share_fetching(guest: Guest, **more: Plain) -> Body:
    rows = [
        {"topic_id": topic.id, "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}
        for topic in guest.topics
    ]
    return {
        "group_id": guest.group, "member_id": "AAAAAAAAAAAAAAAAAAAAAA", "share_session_epoch": 0, "max_wait": 0,
        "min_bytes": 0, "max_bytes": 1000, "max_records": 10, "batch_size": 10, "topics": rows,
        "forgotten_topics_data": [], **more,
    }  # fmt: skip


_COMMIT = "OffsetCommit"


def offsets(guest: Guest) -> Body:
    return {**both(lambda topic: committing(topic, 5), guest), "group_id": guest.group}


def fetched_offsets(guest: Guest, *, every: bool = False) -> Body:
    rows = (
        None
        if every
        else [{"name": topic.name, "topic_id": topic.id, "partition_indexes": [0]} for topic in guest.topics]
    )
    return {"group_id": guest.group, "topics": rows, "groups": [{"group_id": guest.group, "topics": rows}]}


def in_group(guest: Guest, **more: Plain) -> Body:
    return {"group_id": guest.group, "member_id": "nobody", **more}


def consuming(guest: Guest) -> Body:
    names = [topic.name for topic in guest.topics]
    told = consumer_beat(guest.topic, "AAAAAAAAAAAAAAAAAAAAAA", subscribed_topic_names=names)
    return {**told, "group_id": guest.group}


def by_groups(guest: Guest, field: str) -> Body:
    return {field: [guest.group, guest.stage.name("another")]}


def streaming(guest: Guest) -> Body:
    wanted = topology(
        subtopology(
            "0", guest.topic.name, changelogs=[internal(guest.stage.name("store"))],
            repartitions=[internal(guest.stage.name("repartition"), 1)],
        )
    )  # fmt: skip
    return {**streams_beat(wanted), "group_id": guest.group}


@table(
    commit=(_COMMIT, offsets, GROUP_SEEN, GROUP_READ, TOPIC_READ, OTHER_READ),
    commit_of_topics_alone=(_COMMIT, offsets, TOPIC_READ, OTHER_READ),
    fetch_offsets=("OffsetFetch", fetched_offsets, GROUP_SEEN, SEEN, OTHER_SEEN),
    fetch_all_offsets=("OffsetFetch", lambda one: fetched_offsets(one, every=True), GROUP_SEEN, SEEN),
    delete_offsets=(
        "OffsetDelete",
        lambda one: {
            "group_id": one.group,
            "topics": [{"name": topic.name, "partitions": [{"partition_index": 0}]} for topic in one.topics],
        },
        GROUP_READ, (DELETE, GROUP, "group"), SEEN, TOPIC_READ,
    ),
    join=(
        "JoinGroup",
        lambda one: in_group(
            one, session_timeout=10_000, rebalance_timeout=1000, protocol_type="kind",
            protocols=[{"name": "range", "metadata": b""}],
        ),
        GROUP_SEEN, GROUP_READ,
    ),
    sync=(
        "SyncGroup",
        lambda one: in_group(
            one, generation_id=1, protocol_type="kind", protocol_name="range", assignments=[]
        ),
        GROUP_SEEN, GROUP_READ,
    ),
    heartbeat=("Heartbeat", lambda one: in_group(one, generation_id=1), GROUP_SEEN, GROUP_READ),
    leave=("LeaveGroup", lambda one: in_group(one, members=[{"member_id": "nobody"}]), GROUP_SEEN, GROUP_READ),
    describe=("DescribeGroups", lambda one: by_groups(one, "groups"), GROUP_SEEN),
    describe_with_operations=(
        "DescribeGroups", lambda one: {**by_groups(one, "groups"), "include_authorized_operations": True},
        GROUP_READ, (DELETE, GROUP, "group"),
    ),
    delete=("DeleteGroups", lambda one: by_groups(one, "groups_names"), GROUP_SEEN, (DELETE, GROUP, "group")),
    describe_consumers=("ConsumerGroupDescribe", lambda one: by_groups(one, "group_ids"), GROUP_SEEN),
    consumer_heartbeat=("ConsumerGroupHeartbeat", consuming, SEEN, GROUP_READ),
    consumer_heartbeat_of_a_group_alone=("ConsumerGroupHeartbeat", consuming, GROUP_READ, SEEN),
    consumer_heartbeat_without_topics=(
        "ConsumerGroupHeartbeat", lambda one: {**consuming(one), "member_epoch": 1, "subscribed_topic_names": None},
        GROUP_READ,
    ),
    share_heartbeat=(
        "ShareGroupHeartbeat",
        lambda one: {**share_beat([topic.name for topic in one.topics], "AAAAAAAAAAAAAAAAAAAAAA"),
                     "group_id": one.group},
        GROUP_SEEN, GROUP_READ, SEEN,
    ),
    share_describe=("ShareGroupDescribe", lambda one: by_groups(one, "group_ids"), GROUP_SEEN),
    share_offsets=(
        "DescribeShareGroupOffsets",
        lambda one: {
            "groups": [
                {"group_id": one.group,
                 "topics": [{"topic_name": topic.name, "partitions": [0]} for topic in one.topics]}
            ]
        },
        GROUP_SEEN, SEEN,
    ),
    all_share_offsets=(
        "DescribeShareGroupOffsets", lambda one: {"groups": [{"group_id": one.group, "topics": None}]}, GROUP_SEEN,
    ),
    alter_share_offsets=(
        "AlterShareGroupOffsets",
        lambda one: {
            "group_id": one.group,
            "topics": [
                {"topic_name": topic.name, "partitions": [{"partition_index": 0, "start_offset": 0}]}
                for topic in one.topics
            ],
        },
        GROUP_SEEN, GROUP_READ, TOPIC_READ,
    ),
    delete_share_offsets=(
        "DeleteShareGroupOffsets",
        lambda one: {"group_id": one.group, "topics": [{"topic_name": topic.name} for topic in one.topics]},
        GROUP_READ, (DELETE, GROUP, "group"), TOPIC_READ,
    ),
    streams_heartbeat=("StreamsGroupHeartbeat", streaming, SEEN, GROUP_READ),
    streams_describe=("StreamsGroupDescribe", lambda one: by_groups(one, "group_ids"), GROUP_SEEN),
)  # fmt: skip
def groups(stage: Stage, api: str, body: Make, *rights: Right) -> None:
    group = Group(stage)
    guest = Guest(stage, group.node)
    guest.group = group.id
    at = (2, 10) if "fetch_all_offsets" in stage.scenario.name else ()
    guest.tries(api, body, *rights, at=at)


@table(
    fetch=("ShareFetch", share_fetching, GROUP_SEEN, GROUP_READ),
    acknowledge=(
        "ShareAcknowledge",
        lambda one: {name: value for name, value in share_fetching(one).items()
                     if name in ("group_id", "member_id", "topics")} | {"share_session_epoch": 1},
        GROUP_SEEN, GROUP_READ,
    ),
)  # fmt: skip
def shares(stage: Stage, api: str, body: Make, *rights: Right) -> None:
    Guest(stage).tries(api, body, *rights)


@table(
    one=({"key_type": 0},), transaction=({"key_type": 1},), share=({"key_type": 2},),
)  # fmt: skip
def coordinators(stage: Stage, kind: Body) -> None:
    group = Group(stage)
    guest = Guest(stage)
    guest.group = group.id
    key = {0: guest.group, 1: guest.till, 2: "group:none:0"}[kind["key_type"]]
    if kind["key_type"] == 1:
        coordinated(stage)
    right: Right = [GROUP_SEEN, (DESCRIBE, TRANSACTIONAL_ID, "till"), (CLUSTER_ACTION, CLUSTER, "cluster")][
        kind["key_type"]
    ]
    with ExitStack() as stack:
        for step in (None, right):
            if step is not None:
                stack.enter_context(granted(stage, guest.rule(step)))
            for version in (3, 6) if kind["key_type"] < 2 else (6,):
                connection = stage.connect(user="alice")
                body = {**kind, "key": key, "coordinator_keys": [key, f"{key}x"]}
                said = connection.ask("FindCoordinator", version, body)
                for row in [said, *said.get("coordinators", [])]:
                    if "node_id" in row and row["node_id"] >= 0:
                        row["node_id"] = "a broker"
                stage.note(f"FindCoordinator v{version}", said)


@table(
    listed=("ListGroups", {}, GROUP_SEEN),
    listed_by_the_cluster=("ListGroups", {}, (DESCRIBE, CLUSTER, "cluster")),
)  # fmt: skip
def groups_listed(stage: Stage, api: str, body: Body, right: Right) -> None:
    group = Group(stage)
    topic = stage.topic("topic")
    group.do(_COMMIT, committing(topic, 5))
    guest = Guest(stage, group.node)
    guest.group = group.id
    with ExitStack() as stack:
        for step in (None, right):
            if step is not None:
                stack.enter_context(granted(stage, guest.rule(step)))
            said = stage.connect(group.node, user="alice").ask(api, 5, body)
            said["groups"] = [row for row in said["groups"] if row["group_id"] == group.id]
            stage.note("ListGroups v5", said)


@table(alice_first=(True,), admin_first=(False,))
def topics_of_a_pattern(stage: Stage, alice_first: bool) -> None:
    """A group has the topics that its first member may describe, whoever else is there."""
    group = Group(stage)
    guest = Guest(stage, group.node)
    guest.group = group.id
    names = f"{guest.topic.name}|{guest.other.name}"
    alice, admin = (stage.connect(group.node, user=user) for user in ("alice", ADMIN))

    def beats(connection: Connection, member: str, epoch: int) -> Body:
        body = {**consumer_beat(None, member, epoch), "group_id": group.id, "subscribed_topic_names": None}
        if not epoch:
            body |= {"rebalance_timeout": 60_000, "topic_partitions": [], "subscribed_topic_regex": names}
        return connection.ask("ConsumerGroupHeartbeat", 1, body)

    def settled(connection: Connection, member: str) -> Body:
        answers = [beats(connection, member, 0)]

        def given() -> bool:
            if answers[-1]["error_code"] == "NONE" and not (answers[-1]["assignment"] or {}).get("topic_partitions"):
                answers.append(beats(connection, member, answers[-1]["member_epoch"]))
                return False
            return True

        stage.until(given, "what it has")
        return answers[-1]

    with granted(stage, guest.rule(GROUP_READ), guest.rule(SEEN)):
        said = settled(*((alice, "alice") if alice_first else (admin, "admin")))
        stage.note("first", [said["error_code"], len(said["assignment"]["topic_partitions"])])
        second = beats(*((admin, "admin") if alice_first else (alice, "alice")), 0)
        stage.note("second", [second["error_code"], second["assignment"]])


def of_till(guest: Guest, **more: Plain) -> Body:
    return {"transactional_id": guest.till, "producer_id": 7, "producer_epoch": 0, **more}


def partitions_of_till(guest: Guest) -> Body:
    rows = [{"name": topic.name, "partitions": [0]} for topic in guest.topics]
    one = of_till(guest, verify_only=False, topics=rows)
    return {
        "transactions": [one], "v3_and_below_transactional_id": guest.till, "v3_and_below_producer_id": 7,
        "v3_and_below_producer_epoch": 0, "v3_and_below_topics": rows,
    }  # fmt: skip


def idempotent(_: Guest) -> Body:
    return {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}


@table(
    init=(
        "InitProducerId", lambda one: {**idempotent(one), "transactional_id": one.till},
        (DESCRIBE, TRANSACTIONAL_ID, "till"), TILL,
    ),
    partitions_join=("AddPartitionsToTxn", partitions_of_till, TILL, (WRITE, TOPIC, "topic"),
                     (WRITE, TOPIC, "other")),
    partitions_join_by_brokers=("AddPartitionsToTxn", partitions_of_till, (CLUSTER_ACTION, CLUSTER, "cluster")),
    offsets_join=("AddOffsetsToTxn", lambda one: of_till(one, group_id=one.group), TILL, GROUP_READ),
    end=("EndTxn", lambda one: of_till(one, committed=True), (DESCRIBE, TRANSACTIONAL_ID, "till"), TILL),
    describe=(
        "DescribeTransactions", lambda one: {"transactional_ids": [one.till]},
        (DESCRIBE, TRANSACTIONAL_ID, "till"),
    ),
    markers=(
        "WriteTxnMarkers",
        lambda one: {
            "markers": [
                {"producer_id": 7, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0,
                 "transaction_version": 1, "topics": [{"name": one.topic.name, "partition_indexes": [0]}]}
            ]
        },
        (DESCRIBE, CLUSTER, "cluster"), (CLUSTER_ACTION, CLUSTER, "cluster"),
    ),
    markers_by_alter=(
        "WriteTxnMarkers",
        lambda one: {
            "markers": [
                {"producer_id": 7, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0,
                 "transaction_version": 1, "topics": [{"name": one.topic.name, "partition_indexes": [0]}]}
            ]
        },
        (ALTER, CLUSTER, "cluster"),
    ),
)  # fmt: skip
def transactions(stage: Stage, api: str, body: Make, *rights: Right) -> None:
    coordinated(stage)
    at = {"partitions_join": (0, 3)}.get(stage.scenario.name.partition(": ")[2], ())
    if "by_brokers" in stage.scenario.name:
        at = (4, 5)
    Guest(stage).tries(api, body, *rights, at=at)


@table(
    by_the_cluster=((IDEMPOTENT_WRITE, CLUSTER, "cluster"),), by_a_topic=((WRITE, TOPIC, "topic"),),
    by_reading=((READ, TOPIC, "topic"),), by_all=((ALL, TOPIC, "other"),),
)  # fmt: skip
def idempotent_producers(stage: Stage, right: Right) -> None:
    Guest(stage).tries("InitProducerId", idempotent, right)


@scenario()
def idempotent_producer_whose_topics_are_all_denied(stage: Stage) -> None:
    guest = Guest(stage)
    allowed = Rule(WRITE, TOPIC, guest.topic.name)
    for denied in (
        Rule(WRITE, TOPIC, guest.topic.name, permission_type=DENY),
        Rule(WRITE, TOPIC, stage.name("top"), PREFIXED, DENY),
        Rule(WRITE, TOPIC, "*", permission_type=DENY),
        Rule(WRITE, TOPIC, guest.other.name, permission_type=DENY),
    ):
        with granted(stage, allowed, denied):
            guest.ask("InitProducerId", idempotent(guest), 5)


@scenario()
def offsets_of_a_transaction(stage: Stage) -> None:
    coordinated(stage)
    group = Group(stage)
    guest = Guest(stage, group.node)
    guest.group = group.id

    def body(one: Guest) -> Body:
        rows = [
            {"name": topic.name,
             "partitions": [{"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1,
                             "committed_metadata": ""}]}
            for topic in one.topics
        ]  # fmt: skip
        return of_till(one, group_id=one.group, topics=rows, generation_id=-1, member_id="")

    guest.tries("TxnOffsetCommit", body, TILL, GROUP_READ, at=(0, 5))
