"""The records of streams groups, byte for byte as Kafka writes them. The version of the key tells the kind.

17  a group: its epoch                      18  (not used)
19  a member: its client and process        20  the target assignment: its epoch
21  the target of one member                22  the current assignment of a member
23  the topology
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abeyant.broker.coordinator.schema import Field, Nullable, Schema
from abeyant.broker.groups.consumer.group import MemberState
from abeyant.broker.groups.streams.group import Endpoint, StreamsGroup, StreamsMember
from abeyant.broker.groups.streams.tasks import Tasks, read_tasks, task_rows
from abeyant.broker.groups.streams.topology import KeyValue, Topology, read_topology
from abeyant.broker.wire.schema import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abeyant.broker.coordinator.shard import Entry

GROUP, MEMBER, TARGET, TARGET_OF_MEMBER, CURRENT, TOPOLOGY = 17, 19, 20, 21, 22, 23
KINDS = (GROUP, MEMBER, TARGET, TARGET_OF_MEMBER, CURRENT, TOPOLOGY)

_GROUP_KEY = Schema("a streams group's key", TOPOLOGY, group_id="string")
_MEMBER_KEY = Schema("a member's key", TOPOLOGY, group_id="string", member_id="string")
_KEY_VALUE = Schema("a setting", key="string", value="string")
_GROUP = Schema(
    "a streams group", flexible_since=0, epoch="int32", metadata_hash="int64",
    validated_epoch=Field("int32", default=-1, tag=0), configs=Field(Nullable([_KEY_VALUE]), default=None, tag=1),
)  # fmt: skip
_ENDPOINT = Schema("an endpoint", host="string", port="uint16")
_MEMBER = Schema(
    "a member of a streams group", flexible_since=0, instance_id=Nullable("string"), rack_id=Nullable("string"),
    client_id="string", client_host="string", rebalance_timeout="int32", topology_epoch="int32", process_id="string",
    user_endpoint=Nullable(_ENDPOINT), client_tags=[_KEY_VALUE],
)  # fmt: skip
_TARGET_EPOCH = Schema(
    "the epoch of a target", flexible_since=0, epoch="int32", timestamp=Field("int64", default=0, tag=0)
)
_TASKS = Schema("tasks", subtopology_id="string", partitions=["int32"])
_TARGET = Schema("a target assignment", flexible_since=0, active=[_TASKS], standby=[_TASKS], warmup=[_TASKS])
_TASKS_SINCE = Schema(
    "tasks", subtopology_id="string", partitions=["int32"],
    epochs=Field(Nullable(["int32"]), default=None, tag=0),
)  # fmt: skip
_CURRENT = Schema(
    "a current assignment", flexible_since=0, epoch="int32", previous_epoch="int32", state="int8",
    active=[_TASKS_SINCE], standby=[_TASKS_SINCE], warmup=[_TASKS_SINCE], revoking_active=[_TASKS_SINCE],
    revoking_standby=[_TASKS_SINCE], revoking_warmup=[_TASKS_SINCE],
)  # fmt: skip
_TOPIC = Schema("a topic", name="string", partitions="int32", replication_factor="int16", topic_configs=[_KEY_VALUE])
_COPARTITION = Schema(
    "a copartition group", source_topics=["int16"], source_topic_regex=["int16"], repartition_source_topics=["int16"]
)
_SUBTOPOLOGY = Schema(
    "a subtopology", subtopology_id="string", source_topics=["string"], source_topic_regex=["string"],
    state_changelog_topics=[_TOPIC], repartition_sink_topics=["string"], repartition_source_topics=[_TOPIC],
    copartition_groups=[_COPARTITION],
)  # fmt: skip
_TOPOLOGY = Schema("a topology", flexible_since=0, epoch="int32", subtopologies=[_SUBTOPOLOGY])


def read_key(kind: int, data: bytes) -> tuple[str, str]:
    """Return the group id, and the member id or "". Raises ValueError."""
    if kind in (GROUP, TARGET, TOPOLOGY):
        return _GROUP_KEY.read(data).group_id, ""
    key = _MEMBER_KEY.read(data)
    return key.group_id, key.member_id


def group(group_id: str, epoch: int, validated_epoch: int, configs: Mapping[str, str]) -> Entry:
    """Return the record with a group's epoch, the topology epoch whose topics exist, and the assignment's settings."""
    settings = [KeyValue(*item) for item in sorted(configs.items())]
    value = Message(epoch=epoch, metadata_hash=0, validated_epoch=validated_epoch, configs=settings)
    return _group_key(GROUP, group_id), _GROUP.write(0, value)


def member(group_id: str, one: StreamsMember) -> Entry:
    """Return the record with a member's client, process and topology epoch."""
    return _member_key(MEMBER, group_id, one.id), _MEMBER.write(0, one)


def target(group_id: str, epoch: int, now_ms: int) -> Entry:
    """Return the record with the epoch of the target assignment, and the time when it was computed."""
    return _group_key(TARGET, group_id), _TARGET_EPOCH.write(0, Message(epoch=epoch, timestamp=now_ms))


def target_of_member(group_id: str, member_id: str, tasks: Tasks) -> Entry:
    """Return the record with a member's target assignment."""
    value = Message(active=task_rows(tasks.active), standby=task_rows(tasks.standby), warmup=())
    return _member_key(TARGET_OF_MEMBER, group_id, member_id), _TARGET.write(0, value)


def current(group_id: str, one: StreamsMember) -> Entry:
    """Return the record with a member's current assignment."""

    def epochs(rows: Any) -> list[int]:
        return [one.since.get(task, one.epoch) for task in rows]

    def without(_: Any) -> None:
        return None

    value = Message(
        epoch=one.epoch, previous_epoch=one.previous_epoch, state=one.state,
        active=task_rows(one.assigned.active, epochs=epochs), standby=task_rows(one.assigned.standby, epochs=without),
        warmup=(), revoking_active=task_rows(one.revoking.active, epochs=epochs),
        revoking_standby=task_rows(one.revoking.standby, epochs=without), revoking_warmup=(),
    )  # fmt: skip
    return _member_key(CURRENT, group_id, one.id), _CURRENT.write(0, value)


def topology(group_id: str, one: Topology) -> Entry:
    """Return the record with the topology."""
    return _group_key(TOPOLOGY, group_id), _TOPOLOGY.write(0, one)


def replay(group: StreamsGroup, kind: int, member_id: str, value: bytes | None) -> None:
    """Apply a record to its group, except a tombstone of the whole group. Raises ValueError."""
    previous = group.members.get(member_id) or StreamsMember(member_id)
    if kind == GROUP and value is not None:
        record = _GROUP.read(value)
        group.epoch, group.validated_epoch = record.epoch, record.validated_epoch
        group.configs = {config.key: config.value for config in record.configs or ()}
    elif kind == TARGET and value is not None:
        record = _TARGET_EPOCH.read(value)
        group.target_epoch, group.target_time = record.epoch, record.timestamp
    elif kind == TOPOLOGY:
        group.topology = None if value is None else read_topology(_TOPOLOGY.read(value))
    elif kind == TARGET_OF_MEMBER and value is None:
        group.target.pop(member_id, None)
    elif kind == TARGET_OF_MEMBER and value is not None:
        record = _TARGET.read(value)
        group.target[member_id] = Tasks(read_tasks(record.active), read_tasks(record.standby))
    elif kind == MEMBER and value is None:
        group.members.pop(member_id, None)
        if not group.members:
            group.shutdown_by = None
    elif kind == MEMBER and value is not None:
        group.members[member_id] = _read_member(value, previous)
    elif kind == CURRENT and value is not None:
        group.members[member_id] = _read_current(value, previous)


def _read_member(data: bytes, previous: StreamsMember) -> StreamsMember:
    value = _MEMBER.read(data)
    endpoint = value.user_endpoint
    return previous._replace(
        rack_id=value.rack_id, client_id=value.client_id, client_host=value.client_host,
        rebalance_timeout=value.rebalance_timeout, topology_epoch=value.topology_epoch, process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple(KeyValue(tag.key, tag.value) for tag in value.client_tags),
    )  # fmt: skip


def _read_current(data: bytes, previous: StreamsMember) -> StreamsMember:
    value = _CURRENT.read(data)
    since = {
        (row.subtopology_id, index): epoch
        for row in (*value.active, *value.revoking_active)
        for index, epoch in zip(row.partitions, row.epochs or [value.epoch] * len(row.partitions), strict=True)
    }
    return previous._replace(
        epoch=value.epoch, previous_epoch=value.previous_epoch, state=MemberState(value.state), since=since,
        assigned=Tasks(read_tasks(value.active), read_tasks(value.standby)),
        revoking=Tasks(read_tasks(value.revoking_active), read_tasks(value.revoking_standby)),
    )  # fmt: skip


def tombstones(streams: StreamsGroup) -> list[Entry]:
    """Return the tombstones of a group's records."""
    members = [entry for member_id in streams.members for entry in member_tombstones(streams.id, member_id)]
    return [*members, *((_group_key(kind, streams.id), None) for kind in (TARGET, GROUP, TOPOLOGY))]


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Return the tombstones of a member's records."""
    return [(_member_key(kind, group_id, member_id), None) for kind in (CURRENT, TARGET_OF_MEMBER, MEMBER)]


def _group_key(kind: int, group_id: str) -> bytes:
    return _GROUP_KEY.write(kind, Message(group_id=group_id))


def _member_key(kind: int, group_id: str, member_id: str) -> bytes:
    return _MEMBER_KEY.write(kind, Message(group_id=group_id, member_id=member_id))
