"""The records of `__consumer_offsets`, byte for byte as Kafka's: a key says by its first two bytes what it is of.

    0, 1  an offset that was committed: group, topic, partition
    2     a group that speaks the classic protocol

Versions are those that Kafka 4 writes: offsets 3 (1 where a client of old has said how long to keep them), groups 3.
Older ones are read.
"""

from __future__ import annotations

from typing import NamedTuple

from abeyant.broker.groups.classic import ClassicGroup, State
from abeyant.broker.groups.member import Joining, Member
from abeyant.broker.groups.primitives import Reader, Writer

OFFSET, GROUP = 1, 2
_FOR_EVER = -1


class OffsetKey(NamedTuple):
    """Of which group's reader, in which partition."""

    group: str
    topic: str
    partition: int


class Offset(NamedTuple):
    """What was committed."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None = None


# -- keys


def kind_of(key: bytes) -> int:
    """What a key is of."""
    return Reader(key).number("h")


def offset_key(key: OffsetKey) -> bytes:
    """As Kafka writes it."""
    return Writer("h", OFFSET).text(key.group).text(key.topic).numbers("i", key.partition).done()


def read_offset_key(data: bytes) -> OffsetKey:
    """Of either version."""
    reader = Reader(data)
    reader.number("h")
    return OffsetKey(reader.text(), reader.text(), reader.number("i"))


def group_key(group_id: str) -> bytes:
    """As Kafka writes it."""
    return Writer("h", GROUP).text(group_id).done()


def read_group_key(data: bytes) -> str:
    """The group's id."""
    reader = Reader(data)
    reader.number("h")
    return reader.text()


# -- values


def offset_value(offset: Offset) -> bytes:
    """As Kafka writes it."""
    if offset.expire_ms is not None:
        return (
            Writer("hq", 1, offset.offset)
            .text(offset.metadata)
            .numbers("qq", offset.commit_ms, offset.expire_ms)
            .done()
        )
    return (
        Writer("hqi", 3, offset.offset, offset.leader_epoch).text(offset.metadata).numbers("q", offset.commit_ms).done()
    )


def read_offset_value(data: bytes) -> Offset:
    """Of versions 0 to 3. Raises ValueError for others."""
    reader = Reader(data)
    version = _version(reader, 3, "an offset")
    offset = reader.number("q")
    leader_epoch = reader.number("i") if version >= 3 else -1
    metadata = reader.text()
    commit_ms = reader.number("q")
    expire_ms = reader.number("q") if version == 1 else _FOR_EVER
    return Offset(offset, leader_epoch, metadata, commit_ms, None if expire_ms == _FOR_EVER else expire_ms)


def group_value(group: ClassicGroup, assignments: dict[str, bytes]) -> bytes:
    """As Kafka writes it, with these assignments in place of those that its members have."""
    writer = Writer("h", 3).text(group.protocol_type or "").numbers("i", group.generation)
    writer.text(group.protocol).text(group.leader)
    writer.numbers("qi", -1 if group.since_ms is None else group.since_ms, len(group.members))
    for member in group.members.values():
        writer.text(member.id).text(member.instance_id).text(member.client_id).text(member.client_host)
        writer.numbers("ii", member.rebalance_timeout, member.session_timeout)
        writer.data(member.metadata(group.protocol)).data(assignments.get(member.id, b""))
    return writer.done()


def read_group_value(group_id: str, data: bytes) -> ClassicGroup:
    """A group with its members, of versions 0 to 3. Raises ValueError for others."""
    reader = Reader(data)
    version = _version(reader, 3, "a group")
    protocol_type = reader.text()
    generation = reader.number("i")
    protocol, leader = reader.nullable(), reader.nullable()
    since_ms = reader.number("q") if version >= 2 else -1
    group = ClassicGroup(group_id, None if since_ms < 0 else since_ms)
    for _ in range(reader.number("i")):
        member_id = reader.text()
        instance_id = reader.nullable() if version >= 3 else None
        client_id, client_host = reader.text(), reader.text()
        rebalance_timeout = reader.number("i") if version >= 1 else -1
        session_timeout = reader.number("i")
        asked = Joining(
            member_id, instance_id, client_id, client_host, session_timeout,
            session_timeout if rebalance_timeout < 0 else rebalance_timeout, protocol_type,
            ((protocol or "", reader.data()),),
        )  # fmt: skip
        member = Member(group_id, member_id, asked)
        member.assignment = reader.data()
        group.add(member)
    group.protocol_type = protocol_type or None
    group.generation, group.protocol, group.leader = generation, protocol, leader
    group.state = group.previous = State.STABLE if group.members else State.EMPTY
    return group


def _version(reader: Reader, latest: int, what: str) -> int:
    version = reader.number("h")
    if not 0 <= version <= latest:
        raise ValueError(f"{what} in version {version} of its record; 0 to {latest} can be read")
    return version
