"""What a user sees of topics, settings and the cluster who may not, who may in part, and who may."""

from __future__ import annotations

from ..bodies import delete_records, epoch_end, fetch, list_offsets, part, produce
from ..messages import Plain
from ..records import TRANSACTIONAL, Batch
from ..rights import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    OTHER_READ,
    OTHER_SEEN,
    PREFIXED,
    READ,
    SEEN,
    TILL,
    TOPIC,
    TOPIC_READ,
    WRITE,
    Body,
    Guest,
    Make,
    Right,
    Rule,
    both,
    granted,
)
from ..scenario import Stage, table
from .transactions import coordinated


def records(guest: Guest, **more: Plain) -> Batch:
    return Batch((b"value",), at=guest.stage.base_time, **more)


def producing(guest: Guest) -> Body:
    return both(lambda topic: produce(topic, records(guest)), guest, "topic_data")


def transactional(guest: Guest) -> Body:
    batch = records(guest, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=0)
    return produce(guest.topic, batch, transactional_id=guest.till)


def named(guest: Guest, *, field: str = "topics", **more: Plain) -> Body:
    return {field: [{"name": topic.name} for topic in guest.topics], **more}


def of_partitions(guest: Guest, field: str, *, key: str = "name", **more: Plain) -> Body:
    return {"topics": [{key: topic.name, field: [0]} for topic in guest.topics], **more}


def resources(guest: Guest, **more: Plain) -> Body:
    """Of each kind that has settings."""
    rows = [(2, guest.topic.name), (2, guest.other.name), (4, "1"), (32, guest.group)]
    return {"resources": [{"resource_type": kind, "resource_name": name, **more} for kind, name in rows]}


def setting(guest: Guest, **step: Plain) -> Body:
    rows = [(2, guest.topic.name, "retention.ms"), (2, guest.other.name, "retention.ms"),
            (4, "1", "log.retention.ms"), (32, guest.group, "consumer.session.timeout.ms")]  # fmt: skip
    listed = [
        {
            "resource_type": kind,
            "resource_name": resource,
            "configs": [{"name": name, "value": "50000", **step}],
        }
        for kind, resource, name in rows
    ]
    return {"resources": listed, "validate_only": True}


def making(guest: Guest) -> Body:
    names = [guest.stage.name(name) for name in ("made", "other made")]
    rows = [{"name": name.replace(" ", "-"), "num_partitions": 1, "replication_factor": 1} for name in names]
    return {"topics": rows, "timeout": 10_000, "validate_only": True}


def fetching(guest: Guest) -> Body:
    return both(lambda topic: fetch(topic, part()), guest)


@table(
    produce=("Produce", producing, (DESCRIBE, TOPIC, "topic"), (WRITE, TOPIC, "topic"), (WRITE, TOPIC, "other")),
    transactional_produce=("Produce", transactional, (WRITE, TOPIC, "topic"), TILL),
    fetch=("Fetch", fetching, SEEN, TOPIC_READ, OTHER_READ),
    list_offsets=("ListOffsets", lambda one: both(lambda topic: list_offsets(topic, -1), one), SEEN, OTHER_READ),
    epoch_ends=(
        "OffsetForLeaderEpoch", lambda one: both(lambda topic: epoch_end(topic, 0), one), SEEN, OTHER_SEEN,
    ),
    metadata=("Metadata", named, SEEN, OTHER_READ),
    metadata_of_all=("Metadata", lambda _: {"topics": None}, SEEN, OTHER_READ),
    metadata_with_operations=(
        "Metadata",
        lambda one: named(
            one, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
        ),
        SEEN, (ALTER, TOPIC, "topic"), (ALL, TOPIC, "other"), (DESCRIBE, CLUSTER, "cluster"),
        (ALTER, CLUSTER, "cluster"),
    ),
    metadata_by_id=(
        "Metadata", lambda one: {"topics": [{"topic_id": topic.id, "name": None} for topic in one.topics]}, SEEN,
    ),
    topic_partitions=("DescribeTopicPartitions", named, SEEN, OTHER_SEEN),
    topic_partitions_of_all=("DescribeTopicPartitions", lambda _: {"topics": []}, SEEN, OTHER_SEEN),
    delete_records=(
        "DeleteRecords", lambda one: both(lambda topic: delete_records(topic, 0), one), SEEN,
        (DELETE, TOPIC, "topic"), (DELETE, TOPIC, "other"),
    ),
    producers=("DescribeProducers", lambda one: of_partitions(one, "partition_indexes"), SEEN, TOPIC_READ),
    create_partitions=(
        "CreatePartitions",
        lambda one: {
            "topics": [{"name": topic.name, "count": 2, "assignments": None} for topic in one.topics],
            "timeout": 10_000, "validate_only": True,
        },
        SEEN, (ALTER, TOPIC, "topic"), (ALTER, TOPIC, "other"),
    ),
    create_topics=("CreateTopics", making, (CREATE, CLUSTER, "cluster"), (DESCRIBE_CONFIGS, TOPIC, "*")),
    describe_configs=(
        "DescribeConfigs", lambda one: resources(one, configuration_keys=["retention.ms", "node.id"]), SEEN,
        (DESCRIBE_CONFIGS, TOPIC, "topic"), (DESCRIBE_CONFIGS, CLUSTER, "cluster"),
        (DESCRIBE_CONFIGS, GROUP, "group"),
    ),
    alter_configs=(
        "AlterConfigs", setting, (ALTER, TOPIC, "topic"), (ALTER_CONFIGS, TOPIC, "topic"),
        (ALTER_CONFIGS, CLUSTER, "cluster"), (ALTER_CONFIGS, GROUP, "group"),
    ),
    alter_configs_by_steps=(
        "IncrementalAlterConfigs", lambda one: setting(one, config_operation=0), (ALTER_CONFIGS, TOPIC, "topic"),
        (ALTER_CONFIGS, CLUSTER, "cluster"), (ALTER_CONFIGS, GROUP, "group"),
    ),
)  # fmt: skip
def topics(stage: Stage, api: str, body: Make, *rights: Right) -> None:
    if "transactional" in stage.scenario.name:
        coordinated(stage)
    at = {"metadata_of_all": (1, 13), "metadata_by_id": (12, 13)}.get(stage.scenario.name.partition(": ")[2], ())
    Guest(stage).tries(api, body, *rights, at=at)


@table(
    by_topic=((CREATE, TOPIC, "*"),), by_cluster=((CREATE, CLUSTER, "cluster"),),
    seen=(SEEN, (DESCRIBE, TOPIC, "absent"), (CREATE, TOPIC, "absent")),
    created_unseen=((CREATE, TOPIC, "absent"), (DESCRIBE, TOPIC, "absent")),
)  # fmt: skip
def metadata_that_creates(stage: Stage, *rights: Right) -> None:
    guest = Guest(stage)
    guest.tries(
        "Metadata", lambda one: {"topics": [{"name": one.absent.name}], "allow_auto_topic_creation": True}, *rights
    )


@table(
    created_by_prefix=(CREATE, PREFIXED, "made"), created_by_name=(CREATE, LITERAL, "made"),
    created_by_another_prefix=(CREATE, PREFIXED, "mode"),
)  # fmt: skip
def topics_created(stage: Stage, operation: int, pattern: int, name: str) -> None:
    guest = Guest(stage)
    with granted(stage, Rule(operation, TOPIC, stage.name(name), pattern)):
        guest.ask("CreateTopics", making(guest), 7)


@table(
    by_name=("name",), by_id=("id",),
)  # fmt: skip
def topics_deleted(stage: Stage, by: str) -> None:
    guest = Guest(stage)

    def body(one: Guest) -> Body:
        rows = [
            {"name": topic.name if by == "name" else None, "topic_id": topic.id if by == "id" else None}
            for topic in one.topics
        ]
        return {"topics": rows, "topic_names": [topic.name for topic in one.topics], "timeout": 10_000}

    guest.tries("DeleteTopics", body, SEEN, (DELETE, TOPIC, "topic"), at=(6,))


_FILTER = {"resource_type_filter": TOPIC, "resource_name_filter": "nowhere", "pattern_type_filter": LITERAL,
           "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}  # fmt: skip
_NOWHERE = Rule(READ, TOPIC, "nowhere", principal="User:bob")


@table(
    create_acls=("CreateAcls", {"creations": [_NOWHERE.creation]}, (DESCRIBE, CLUSTER, "cluster")),
    describe_acls=("DescribeAcls", _FILTER, (DESCRIBE, CLUSTER, "cluster")),
    delete_acls=("DeleteAcls", {"filters": [_FILTER]}, (DESCRIBE, CLUSTER, "cluster"), (ALTER, CLUSTER, "cluster")),
    quotas=(
        "DescribeClientQuotas",
        {"components": [{"entity_type": "client-id", "match_type": 0, "match": "nobody"}], "strict": True},
        (DESCRIBE, CLUSTER, "cluster"), (DESCRIBE_CONFIGS, CLUSTER, "cluster"),
    ),
    alter_quotas=(
        "AlterClientQuotas",
        {"entries": [{"entity": [{"entity_type": "client-id", "entity_name": "nobody"}],
                      "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]}],
         "validate_only": True},
        (ALTER, CLUSTER, "cluster"), (ALTER_CONFIGS, CLUSTER, "cluster"),
    ),
    users=("DescribeUserScramCredentials", {"users": [{"name": "nobody"}]}, (DESCRIBE, CLUSTER, "cluster")),
    alter_users=(
        "AlterUserScramCredentials", {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
        (DESCRIBE, CLUSTER, "cluster"), (ALTER, CLUSTER, "cluster"),
    ),
    reassign=(
        "AlterPartitionReassignments",
        {"timeout": 10_000,
         "topics": [{"name": "nowhere", "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
        (DESCRIBE, CLUSTER, "cluster"), (ALTER, CLUSTER, "cluster"),
    ),
    reassignments=(
        "ListPartitionReassignments",
        {"timeout": 10_000, "topics": [{"name": "nowhere", "partition_indexes": [0]}]},
        (DESCRIBE, CLUSTER, "cluster"),
    ),
    elect=(
        "ElectLeaders",
        {"election_type": 0, "topic_partitions": [{"topic": "nowhere", "partitions": [0]}], "timeout": 10_000},
        (DESCRIBE, CLUSTER, "cluster"), (ALTER, CLUSTER, "cluster"),
    ),
    log_dirs=(
        "DescribeLogDirs", {"topics": [{"topic": "nowhere", "partitions": [0]}]}, (DESCRIBE, CLUSTER, "cluster"),
    ),
    move_logs=(
        "AlterReplicaLogDirs",
        {"dirs": [{"path": "/nowhere", "topics": [{"name": "nowhere", "partitions": [0]}]}]},
        (DESCRIBE, CLUSTER, "cluster"), (ALTER, CLUSTER, "cluster"),
    ),
    config_resources=(
        "ListConfigResources", {"resource_types": [16]}, (DESCRIBE, CLUSTER, "cluster"),
        (DESCRIBE_CONFIGS, CLUSTER, "cluster"),
    ),
    describe_cluster=(
        "DescribeCluster", {"include_cluster_authorized_operations": True, "endpoint_type": 1},
        (DESCRIBE, CLUSTER, "cluster"), (ALTER, CLUSTER, "cluster"),
    ),
    read_share_state=(
        "ReadShareGroupState",
        {"group_id": "nobody",
         "topics": [{"topic_id": "11111111-2222-3333-4444-555555555555",
                     "partitions": [{"partition": 0, "leader_epoch": 0}]}]},
        (DESCRIBE, CLUSTER, "cluster"),
    ),
    delete_share_state=(
        "DeleteShareGroupState",
        {"group_id": "nobody",
         "topics": [{"topic_id": "11111111-2222-3333-4444-555555555555", "partitions": [{"partition": 0}]}]},
        (ALTER, CLUSTER, "cluster"),
    ),
)  # fmt: skip
def cluster(stage: Stage, api: str, body: Body, *rights: Right) -> None:
    Guest(stage).tries(api, lambda _: body, *rights)
