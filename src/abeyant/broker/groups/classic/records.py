"""The record of `__consumer_offsets` for a group of the classic protocol, byte for byte as Kafka's: keys of kind 2.

Values are of version 3, which Kafka 4 writes. Older ones are read.
"""

from __future__ import annotations

from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import Joining, Member
from abeyant.broker.groups.primitives import Reader, Writer, read_version

GROUP = 2


def group_key(group_id: str) -> bytes:
    """Return the record's key as Kafka writes it."""
    return Writer("h", GROUP).text(group_id).done()


def read_group_key(data: bytes) -> str:
    """Return the group id."""
    reader = Reader(data)
    reader.number("h")
    return reader.text()


def group_value(group: ClassicGroup, assignments: dict[str, bytes]) -> bytes:
    """Return the record's value as Kafka writes it, with these assignments in place of the members' own."""
    writer = Writer("h", 3).text(group.protocol_type or "").numbers("i", group.generation)
    writer.text(group.protocol).text(group.leader)
    writer.numbers("qi", -1 if group.since_ms is None else group.since_ms, len(group.members))
    for member in group.members.values():
        writer.text(member.id).text(member.instance_id).text(member.client_id).text(member.client_host)
        writer.numbers("ii", member.rebalance_timeout, member.session_timeout)
        writer.data(member.metadata(group.protocol)).data(assignments.get(member.id, b""))
    return writer.done()


def read_group_value(group_id: str, data: bytes) -> ClassicGroup:
    """Return the group with its members, from versions 0 to 3. Raises ValueError for others."""
    reader = Reader(data)
    version = read_version(reader, 3, "a group")
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
        joining = Joining(
            member_id, instance_id, client_id, client_host, session_timeout,
            session_timeout if rebalance_timeout < 0 else rebalance_timeout, protocol_type,
            ((protocol or "", reader.data()),),
        )  # fmt: skip
        member = Member(group_id, member_id, joining)
        member.assignment = reader.data()
        group.add(member)
    group.protocol_type = protocol_type or None
    group.generation, group.protocol, group.leader = generation, protocol, leader
    group.state = group.previous = State.STABLE if group.members else State.EMPTY
    return group
