"""The record of a classic group in `__consumer_offsets`, byte for byte as Kafka writes it: keys of kind 2.

Values are written in version 3, as by Kafka 4, and read in versions 0 to 3.
"""

from __future__ import annotations

from abeyant.broker.coordinator.schema import Field, Nullable, Schema
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import JoinRequest, Member
from abeyant.broker.wire.schema import Message

GROUP = 2
_VERSION = 3

_KEY = Schema("the key of a group", GROUP, group_id="string")
_MEMBER = Schema(
    "a member", member_id="string", instance_id=Field(Nullable("string"), since=3), client_id="string",
    client_host="string", rebalance_timeout=Field("int32", since=1, default=-1), session_timeout="int32",
    metadata="bytes", assignment="bytes",
)  # fmt: skip
_VALUE = Schema(
    "a group", _VERSION, protocol_type="string", generation="int32", protocol=Nullable("string"),
    leader=Nullable("string"), since_ms=Field("int64", since=2, default=-1), members=[_MEMBER],
)  # fmt: skip


def group_key(group_id: str) -> bytes:
    """Return the record's key as Kafka writes it."""
    return _KEY.write(GROUP, Message(group_id=group_id))


def read_group_key(data: bytes) -> str:
    """Return the group id from a record's key. Raises ValueError."""
    group_id: str = _KEY.read(data).group_id
    return group_id


def group_value(group: ClassicGroup, assignments: dict[str, bytes]) -> bytes:
    """Return the record's value as Kafka writes it, with these assignments instead of the members' own."""
    members = [
        Message(
            member_id=member.id, instance_id=member.instance_id, client_id=member.client_id,
            client_host=member.client_host, rebalance_timeout=member.rebalance_timeout,
            session_timeout=member.session_timeout, metadata=member.metadata(group.protocol),
            assignment=assignments.get(member.id, b""),
        )
        for member in group.members.values()
    ]  # fmt: skip
    value = Message(
        protocol_type=group.protocol_type or "", generation=group.generation, protocol=group.protocol,
        leader=group.leader, since_ms=-1 if group.since_ms is None else group.since_ms, members=members,
    )  # fmt: skip
    return _VALUE.write(_VERSION, value)


def read_group_value(group_id: str, data: bytes) -> ClassicGroup:
    """Return the group with its members, from a value of version 0 to 3. Raises ValueError."""
    value = _VALUE.read(data)
    group = ClassicGroup(group_id, None if value.since_ms < 0 else value.since_ms)
    for one in value.members:
        joining = JoinRequest(
            one.member_id, one.instance_id, one.client_id, one.client_host, one.session_timeout,
            one.session_timeout if one.rebalance_timeout < 0 else one.rebalance_timeout, value.protocol_type,
            ((value.protocol or "", one.metadata),),
        )  # fmt: skip
        member = Member(one.member_id, joining)
        member.assignment = one.assignment
        group.add(member)
    group.protocol_type = value.protocol_type or None
    group.generation, group.protocol, group.leader = value.generation, value.protocol, value.leader
    group.state = group.previous = State.STABLE if group.members else State.EMPTY
    return group
