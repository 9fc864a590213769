"""The records of consumer groups, byte for byte as Kafka writes them. The version of the key tells the kind.

3  a group: its epoch                    5  a member: its subscription
6  the target assignment: its epoch      7  the target of one member
8  the current assignment of a member  16  the topics of a pattern
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from abeyant.broker.coordinator.schema import Field, Nullable, Schema
from abeyant.broker.groups.consumer.assignors import Assignment, Partition
from abeyant.broker.groups.consumer.group import Classic, ConsumerGroup, ConsumerMember, MemberState, Resolved
from abeyant.broker.wire.encoding import varint
from abeyant.broker.wire.schema import Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry

GROUP, MEMBER, TARGET, TARGET_OF_MEMBER, CURRENT, REGEX = 3, 5, 6, 7, 8, 16
KINDS = (GROUP, MEMBER, TARGET, TARGET_OF_MEMBER, CURRENT, REGEX)

_GROUP_KEY = Schema("a consumer group's key", CURRENT, group_id="string")
_MEMBER_KEY = Schema("a member's key", CURRENT, group_id="string", member_id="string")
_REGEX_KEY = Schema("a pattern's key", REGEX, group_id="string", regex="string")
_EPOCH = Schema("an epoch", flexible_since=0, epoch="int32")
_TARGET_EPOCH = Schema("a target's epoch", flexible_since=0, epoch="int32", timestamp=Field("int64", default=0, tag=0))
_TOPIC = Schema(
    "a topic", topic_id="uuid", partitions=["int32"], epochs=Field(Nullable(["int32"]), tag=0)
)  # epochs: when the member got each partition
_TARGET = Schema("a target assignment", flexible_since=0, topics=[_TOPIC])
_CURRENT = Schema(
    "a current assignment", flexible_since=0, epoch="int32", previous_epoch="int32", state="int8", assigned=[_TOPIC],
    revoking=[_TOPIC],
)  # fmt: skip
_PROTOCOL = Schema("a protocol", name="string", metadata="bytes")
_CLASSIC = Schema("a classic member", flexible_since=0, session_timeout="int32", protocols=[_PROTOCOL])
_MEMBER = Schema(
    "a consumer", flexible_since=0, instance_id=Nullable("string"), rack_id=Nullable("string"), client_id="string",
    client_host="string", topics=["string"], regex=Nullable("string"), rebalance_timeout="int32",
    assignor=Nullable("string"), classic=Field(Nullable(_CLASSIC), tag=0),
)  # fmt: skip
_RESOLVED = Schema("a pattern's topics", flexible_since=0, topics=["string"], version="int64", time="int64")


def read_key(kind: int, data: bytes) -> tuple[str, str]:
    """Return the group id, and the member id, the pattern or "". Raises ValueError."""
    if kind in (GROUP, TARGET):
        return _GROUP_KEY.read(data).group_id, ""
    if kind == REGEX:
        regex = _REGEX_KEY.read(data)
        return regex.group_id, regex.regex
    key = _MEMBER_KEY.read(data)
    return key.group_id, key.member_id


def group(group_id: str, epoch: int) -> Entry:
    """Return the record with a group's epoch."""
    return _group_key(GROUP, group_id), _EPOCH.write(0, Message(epoch=epoch))


def target(group_id: str, epoch: int, now_ms: int) -> Entry:
    """Return the record with the epoch of the target assignment, and the time when it was computed (0: never)."""
    return _group_key(TARGET, group_id), _TARGET_EPOCH.write(0, Message(epoch=epoch, timestamp=now_ms))


def read_target_epoch(data: bytes) -> tuple[int, int]:
    """Return the epoch of a target assignment, and the time when it was computed. Raises ValueError."""
    value = _TARGET_EPOCH.read(data)
    return value.epoch, value.timestamp


def read_epoch(data: bytes) -> int:
    """Return the epoch of a group. Raises ValueError."""
    epoch: int = _EPOCH.read(data).epoch
    return epoch


def member(group_id: str, one: ConsumerMember) -> Entry:
    """Return the record with a member's subscription and client."""
    value = _MEMBER.write(0, one._replace(classic=None))
    if one.classic is not None:
        protocols = [Message(name=name, metadata=metadata) for name, metadata in one.classic.protocols]
        classic = _CLASSIC.write(0, Message(session_timeout=one.classic.session_timeout, protocols=protocols))[2:]
        # One tag, 0: its size, which in Kafka excludes the byte for "not null"; that byte; the fields.
        value = value[:-1] + b"\1\0" + varint(len(classic)) + b"\1" + classic
    return _member_key(MEMBER, group_id, one.id), value


def read_member(data: bytes, known: ConsumerMember) -> ConsumerMember:
    """Return the member `known` with the subscription and client from a value. Raises ValueError."""
    value = _MEMBER.read(data)
    classic = value.classic and Classic(
        value.classic.session_timeout, tuple((protocol.name, protocol.metadata) for protocol in value.classic.protocols)
    )
    return known._replace(
        instance_id=value.instance_id, rack_id=value.rack_id, client_id=value.client_id, client_host=value.client_host,
        topics=value.topics, regex=value.regex, rebalance_timeout=value.rebalance_timeout, assignor=value.assignor,
        classic=classic,
    )  # fmt: skip


def target_of_member(group_id: str, member_id: str, assignment: Assignment) -> Entry:
    """Return the record with a member's target assignment."""
    return _member_key(TARGET_OF_MEMBER, group_id, member_id), _TARGET.write(0, Message(topics=_topics(assignment)))


def read_target(data: bytes) -> Assignment:
    """Return a member's target assignment. Raises ValueError."""
    return _partitions(_TARGET.read(data).topics, {})


def current(group_id: str, one: ConsumerMember) -> Entry:
    """Return the record with a member's current assignment."""
    since = {partition: one.since.get(partition, one.epoch) for partition in one.assigned | one.revoking}
    value = Message(
        epoch=one.epoch, previous_epoch=one.previous_epoch, state=one.state, assigned=_topics(one.assigned, since),
        revoking=_topics(one.revoking, since),
    )  # fmt: skip
    return _member_key(CURRENT, group_id, one.id), _CURRENT.write(0, value)


def read_current(data: bytes, known: ConsumerMember) -> ConsumerMember:
    """Return the member `known` with the current assignment from a value. Raises ValueError."""
    value = _CURRENT.read(data)
    since: dict[Partition, int] = {}
    return known._replace(
        epoch=value.epoch, previous_epoch=value.previous_epoch, state=MemberState(value.state),
        assigned=_partitions(value.assigned, since), revoking=_partitions(value.revoking, since), since=since,
    )  # fmt: skip


def resolved(group_id: str, regex: str, one: Resolved) -> Entry:
    """Return the record with the topics of a pattern."""
    return _regex_key(group_id, regex), _RESOLVED.write(
        0, Message(topics=sorted(one.topics), version=one.version, time=one.time)
    )


def resolved_changes(group: ConsumerGroup, after: Mapping[str, Resolved]) -> list[Entry]:
    """Return records of patterns that are new or resolved again, and tombstones of patterns not in `after`."""
    return [
        *(regex_tombstone(group.id, regex) for regex in group.resolved if regex not in after),
        *(
            resolved(group.id, regex, resolution)
            for regex, resolution in after.items()
            if group.resolved.get(regex) != resolution
        ),
    ]


def read_resolved(data: bytes) -> Resolved:
    """Return the topics of a pattern. Raises ValueError."""
    value = _RESOLVED.read(data)
    return Resolved(frozenset(value.topics), value.version, value.time)


def regex_tombstone(group_id: str, regex: str) -> Entry:
    """Return the tombstone of the record of a pattern."""
    return _regex_key(group_id, regex), None


def all_records(consumers: ConsumerGroup) -> list[Entry]:
    """Return all records of a group whose target assignment has the group's epoch."""
    group_id, epoch = consumers.id, consumers.epoch
    return [
        *(member(group_id, consumer) for consumer in consumers.members.values()),
        group(group_id, epoch),
        *(target_of_member(group_id, member_id, assignment) for member_id, assignment in consumers.target.items()),
        target(group_id, epoch, consumers.target_time),
        *(current(group_id, consumer) for consumer in consumers.members.values()),
    ]


def replay(group: ConsumerGroup, kind: int, member_id: str, value: bytes | None) -> None:
    """Apply a record to its group, except a tombstone of the whole group. Raises ValueError.

    For a pattern's record, `member_id` is the pattern.
    """
    if kind == GROUP and value is not None:
        group.epoch = read_epoch(value)
    elif kind == TARGET and value is not None:
        group.target_epoch, group.target_time = read_target_epoch(value)
    elif kind == TARGET_OF_MEMBER:
        group.target.pop(member_id, None)
        if value is not None:
            group.target[member_id] = read_target(value)
    elif kind == REGEX:
        group.resolved.pop(member_id, None)
        if value is not None:
            group.resolved[member_id] = read_resolved(value)
    elif kind == MEMBER and value is None:
        group.remove(member_id)
    elif kind in (MEMBER, CURRENT) and value is not None:
        known = group.members.get(member_id) or ConsumerMember(member_id)
        group.put((read_member if kind == MEMBER else read_current)(value, known))


def tombstones(consumers: ConsumerGroup) -> list[Entry]:
    """Return the tombstones of a group's records."""
    group_id = consumers.id
    members = [entry for member_id in consumers.members for entry in member_tombstones(group_id, member_id)]
    regexes = [regex_tombstone(group_id, regex) for regex in consumers.resolved]
    return [*members, *regexes, (_group_key(TARGET, group_id), None), (_group_key(GROUP, group_id), None)]


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Return the tombstones of a member's records."""
    return [(_member_key(kind, group_id, member_id), None) for kind in (CURRENT, TARGET_OF_MEMBER, MEMBER)]


def _group_key(kind: int, group_id: str) -> bytes:
    return _GROUP_KEY.write(kind, Message(group_id=group_id))


def _member_key(kind: int, group_id: str, member_id: str) -> bytes:
    return _MEMBER_KEY.write(kind, Message(group_id=group_id, member_id=member_id))


def _regex_key(group_id: str, regex: str) -> bytes:
    return _REGEX_KEY.write(REGEX, Message(group_id=group_id, regex=regex))


def _topics(assignment: Assignment, since: Mapping[Partition, int] | None = None) -> list[Message]:
    """Return the partitions grouped by topic; with `since`, also the epoch of each partition."""
    topics = [(topic, list(rows)) for topic, rows in groupby(sorted(assignment), itemgetter(0))]
    return [
        Message(topic_id=topic, partitions=[index for _, index in rows], epochs=since and [since[row] for row in rows])
        for topic, rows in topics
    ]


def _partitions(topics: Iterable[Any], since: dict[Partition, int]) -> Assignment:
    """Return the partitions. Add their epochs, if any, to `since`."""
    partitions: list[Partition] = []
    for topic in topics:
        rows = [(topic.topic_id, index) for index in topic.partitions]
        partitions += rows
        if topic.epochs is not None:
            since.update(zip(rows, topic.epochs, strict=True))
    return frozenset(partitions)
