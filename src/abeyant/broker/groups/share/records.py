"""The records of share groups, byte for byte as Kafka writes them. The version of the key tells the kind.

10  a member: its subscription              11  a group: its epoch
12  the target assignment: its epoch        13  the target of one member
14  the current assignment of a member      15  the partitions that have a state at the share coordinators
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abeyant.broker.coordinator.schema import Field, Nullable, Schema
from abeyant.broker.groups.consumer.assignors import Assignment
from abeyant.broker.groups.share.group import Partitions, ShareGroup, ShareMember, StateTopics
from abeyant.broker.wire.schema import Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry

MEMBER, GROUP, TARGET, TARGET_OF_MEMBER, CURRENT, STATES = range(10, 16)
KINDS = range(MEMBER, STATES + 1)
_STABLE = 0  # the state of a member; share members have no other

_GROUP_KEY = Schema("a share group's key", STATES, group_id="string")
_MEMBER_KEY = Schema("a member's key", STATES, group_id="string", member_id="string")
_TOPIC = Schema("a topic", topic_id="uuid", partitions=["int32"])
_GROUP = Schema("a share group", flexible_since=0, epoch="int32", metadata_hash="int64")
_TARGET_EPOCH = Schema(
    "the epoch of a target", flexible_since=0, epoch="int32", timestamp=Field("int64", default=-1, tag=0)
)
_TARGET = Schema("a target assignment", flexible_since=0, topics=[_TOPIC])
_CURRENT = Schema(
    "a current assignment", flexible_since=0, epoch="int32", previous_epoch="int32", state="int8", assigned=[_TOPIC]
)
_MEMBER = Schema(
    "a member of a share group", flexible_since=0, rack_id=Nullable("string"), client_id="string",
    client_host="string", topics=["string"],
)  # fmt: skip
_NAMED = Schema("a topic", topic_id="uuid", name="string")
_NAMED_PARTITIONS = Schema("a topic", topic_id="uuid", name="string", partitions=["int32"])
_STATES = Schema(
    "the states of a share group", flexible_since=0, initializing=[_NAMED_PARTITIONS],
    initialized=[_NAMED_PARTITIONS], deleting=[_NAMED],
)  # fmt: skip


def read_key(kind: int, data: bytes) -> tuple[str, str]:
    """Return the group id, and the member id or "". Raises ValueError."""
    if kind in (GROUP, TARGET, STATES):
        return _GROUP_KEY.read(data).group_id, ""
    key = _MEMBER_KEY.read(data)
    return key.group_id, key.member_id


def group(group_id: str, epoch: int) -> Entry:
    """Return the record with a group's epoch."""
    return _group_key(GROUP, group_id), _GROUP.write(0, Message(epoch=epoch, metadata_hash=0))


def target(group_id: str, epoch: int, now_ms: int) -> Entry:
    """Return the record with the epoch of the target assignment, and the time when it was computed."""
    return _group_key(TARGET, group_id), _TARGET_EPOCH.write(0, Message(epoch=epoch, timestamp=now_ms))


def member(group_id: str, one: ShareMember) -> Entry:
    """Return the record with a member's subscription and client."""
    return _member_key(MEMBER, group_id, one.id), _MEMBER.write(0, one)


def read_member(data: bytes, known: ShareMember) -> ShareMember:
    """Return the member `known` with the subscription and client from a value. Raises ValueError."""
    value = _MEMBER.read(data)
    return known._replace(
        rack_id=value.rack_id, client_id=value.client_id, client_host=value.client_host, topics=value.topics
    )


def target_of_member(group_id: str, member_id: str, assignment: Assignment) -> Entry:
    """Return the record with a member's target assignment."""
    return _member_key(TARGET_OF_MEMBER, group_id, member_id), _TARGET.write(0, Message(topics=_topics(assignment)))


def read_target(data: bytes) -> Assignment:
    """Return a member's target assignment. Raises ValueError."""
    return _assignment(_TARGET.read(data).topics)


def current(group_id: str, one: ShareMember) -> Entry:
    """Return the record with a member's current assignment."""
    value = Message(epoch=one.epoch, previous_epoch=one.previous_epoch, state=_STABLE, assigned=_topics(one.assigned))
    return _member_key(CURRENT, group_id, one.id), _CURRENT.write(0, value)


def read_current(data: bytes, known: ShareMember) -> ShareMember:
    """Return the member `known` with the current assignment from a value. Raises ValueError."""
    value = _CURRENT.read(data)
    return known._replace(epoch=value.epoch, previous_epoch=value.previous_epoch, assigned=_assignment(value.assigned))


def states(group_id: str, topics: StateTopics) -> Entry:
    """Return the record of the partitions whose states are being initialized, are initialized, or being deleted."""
    value = Message(
        initializing=_named(topics.initializing),
        initialized=_named(topics.initialized),
        deleting=[Message(topic_id=topic, name=name) for topic, name in topics.deleting.items()],
    )
    return _group_key(STATES, group_id), _STATES.write(0, value)


def read_states(data: bytes) -> StateTopics:
    """Decode the value of a record that `states` made. Raises ValueError."""
    value = _STATES.read(data)
    return StateTopics(
        _read_named(value.initializing),
        _read_named(value.initialized),
        {topic.topic_id: topic.name for topic in value.deleting},
    )


def replay(group: ShareGroup, kind: int, member_id: str, value: bytes | None) -> None:
    """Apply a record to its group, except a tombstone of the whole group. Raises ValueError."""
    if kind == GROUP and value is not None:
        group.epoch = _GROUP.read(value).epoch
    elif kind == TARGET and value is not None:
        message = _TARGET_EPOCH.read(value)
        group.target_epoch, group.target_time = message.epoch, message.timestamp
    elif kind == TARGET_OF_MEMBER:
        group.target.pop(member_id, None)
        if value is not None:
            group.target[member_id] = read_target(value)
    elif kind == MEMBER and value is None:
        group.members.pop(member_id, None)
    elif kind in (MEMBER, CURRENT) and value is not None:
        previous = group.members.get(member_id) or ShareMember(member_id)
        group.members[member_id] = (read_member if kind == MEMBER else read_current)(value, previous)


def tombstones(shares: ShareGroup) -> list[Entry]:
    """Return the tombstones of a group's records."""
    members = [entry for member_id in shares.members for entry in member_tombstones(shares.id, member_id)]
    return [*members, *((_group_key(kind, shares.id), None) for kind in (TARGET, STATES, GROUP))]


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Return the tombstones of a member's records."""
    return [(_member_key(kind, group_id, member_id), None) for kind in (CURRENT, TARGET_OF_MEMBER, MEMBER)]


def _group_key(kind: int, group_id: str) -> bytes:
    return _GROUP_KEY.write(kind, Message(group_id=group_id))


def _member_key(kind: int, group_id: str, member_id: str) -> bytes:
    return _MEMBER_KEY.write(kind, Message(group_id=group_id, member_id=member_id))


def _topics(assignment: Assignment) -> list[Message]:
    topics: dict[object, list[int]] = {}
    for topic, index in sorted(assignment):
        topics.setdefault(topic, []).append(index)
    return [Message(topic_id=topic, partitions=rows) for topic, rows in topics.items()]


def _assignment(topics: Any) -> Assignment:
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def _named(topics: Partitions) -> list[Message]:
    return [
        Message(topic_id=topic, name=name, partitions=sorted(partitions))
        for topic, (name, partitions) in topics.items()
    ]


def _read_named(topics: Any) -> Partitions:
    return {topic.topic_id: (topic.name, frozenset(topic.partitions)) for topic in topics}
