"""The history of a run, as checks read it: plain data, without brokers or clients.

Times are seconds of virtual time since the run began. Lists are in the order in which things happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Place = tuple[str, int]
"""A topic and a partition."""


class Item(NamedTuple):
    """A record's key and value."""

    key: bytes | None
    value: bytes | None


class Produced(NamedTuple):
    """A broker's response to one partition of a produce request: it was sent; the client may not have had it."""

    at: float
    client: str
    process: str
    topic: str
    partition: int
    offset: int
    """Of the first record; -1 where an error was answered."""
    items: tuple[Item, ...]
    acks: int
    error: str
    """Kafka's name for it; NONE where it was acknowledged."""
    producer: tuple[int, int]
    """Producer id and epoch; (-1, -1) without idempotence."""
    transactional_id: str | None
    since: float | None = None
    """When the request arrived."""
    in_sync: tuple[int, int] | None = None
    """Replicas in sync as the leader then knew, and `min.insync.replicas`; None of a request for several partitions."""


class Sent(NamedTuple):
    """A record that a program gave to a producer, in the order in which it was taken; it may never be acknowledged."""

    at: float
    producer: str
    """Of this run, by its process and a number."""
    topic: str
    item: Item
    result: Callable[[], tuple[int, int] | None]
    """Returns its partition and offset; None while, or if, it is not acknowledged."""


class Committed(NamedTuple):
    """A broker's response to one partition of an offset commit."""

    at: float
    client: str
    process: str
    group: str
    generation: int
    topic: str
    partition: int
    offset: int
    error: str
    transactional_id: str | None
    since: float | None = None
    """When the request arrived."""
    producer: tuple[int, int] = (-1, -1)
    """Producer id and epoch, of a commit in a transaction."""
    member: str = ""
    """Its member id; "" for none."""


class Found(NamedTuple):
    """A broker's response to a group that asks what it has committed for a partition: OffsetFetch."""

    at: float
    group: str
    topic: str
    partition: int
    offset: int
    """-1 where nothing is committed."""
    since: float
    """When the request arrived."""


class Initialized(NamedTuple):
    """A broker's response to InitProducerId. With a transactional id, the request fences the previous producer."""

    at: float
    client: str
    process: str
    transactional_id: str | None
    producer: tuple[int, int]
    error: str


class Membership(NamedTuple):
    """A broker's response to a member of a group.

    JoinGroup, SyncGroup, Heartbeat or LeaveGroup of the classic protocol; ConsumerGroupHeartbeat of the consumer one.
    """

    at: float
    api: str
    group: str
    member: str
    generation: int
    error: str
    since: float
    """When the request arrived."""
    session: float = 0.0
    """The session time-out that a JoinGroup asks for, in seconds."""
    assigned: frozenset[Place] | None = None
    """What a ConsumerGroupHeartbeat assigns; None for the same as before. Its generation is the member's epoch."""


class Ended(NamedTuple):
    """A broker's response to the end of a transaction."""

    at: float
    client: str
    process: str
    transactional_id: str
    producer: tuple[int, int]
    committed: bool
    """Whether a commit was wanted, not an abort."""
    error: str
    since: float | None = None
    """When the request arrived."""


class Joined(NamedTuple):
    """A member's assignment began: a consumer's view."""

    at: float
    client: str
    process: str
    group: str | None
    assignment: int
    """Numbers all assignments of a run."""
    partitions: tuple[Place, ...]


class Handed(NamedTuple):
    """A record that a client has handed to the program."""

    at: float
    client: str
    process: str
    group: str | None
    assignment: int
    topic: str
    partition: int
    offset: int
    item: Item
    committed_only: bool
    """Whether the consumer reads committed records only."""


class Sought(NamedTuple):
    """A consumer's position was set by the program: what it reads next may be earlier or later."""

    at: float
    client: str
    process: str
    assignment: int
    topic: str
    partition: int
    offset: int
    """-1 where the broker says it: the beginning, the end, or what is committed."""
    after: int = 0
    """How many records had been handed out in the run."""


class Event(NamedTuple):
    """What was done to the cluster and its clients: faults, starts, kills, and the end of the faults."""

    at: float
    what: str
    """In Kafka's words: "broker 2 pauses for 9 s"."""
    subject: str = ""
    """What it concerns: "broker 2", a process, a group."""
    until: float | None = None


class Stored(NamedTuple):
    """A record that can be read at the end."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    item: Item


class Group(NamedTuple):
    """A group at the end."""

    state: str
    """In Kafka's words."""
    coordinators: tuple[int, ...]
    """The brokers that coordinate it: one."""
    members: dict[str, tuple[frozenset[str], tuple[Place, ...]]]
    """By member id, the topics that it subscribes to and the partitions that it has."""


class Transaction(NamedTuple):
    """The final state of a transactional id."""

    state: str
    """In Kafka's words."""
    coordinators: tuple[int, ...]
    producer: tuple[int, int]
    left: float | None
    """Seconds until an open transaction times out, negative if overdue; None if none is open."""


class Replica(NamedTuple):
    """A replica of a partition at the end."""

    broker: int
    leads: bool
    in_sync: bool
    high_watermark: int
    batches: tuple[tuple[int, int, int], ...]
    """Below its high watermark: the first offset, the leader epoch and the checksum of each."""


@dataclass
class History:
    """What happened in one run, as checks read it: lists in the order in which things happened."""

    produced: list[Produced] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    initialized: list[Initialized] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    sought: list[Sought] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    """What a consumer of everything would read now, those of aborted and open transactions included."""
    stored_committed: list[Stored] = field(default_factory=list)
    """What a consumer with isolation level read_committed would read now."""
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Committed offsets now, by group, topic and partition."""
    groups: dict[str, Group] = field(default_factory=dict)
    """Groups now."""
    transactions: dict[str, Transaction] = field(default_factory=dict)
    """Transactional ids now."""
    replicas: dict[Place, tuple[Replica, ...]] = field(default_factory=dict)
    """Replicas now, those of internal topics included."""
    partitions: dict[str, int] = field(default_factory=dict)
    """Topics, and how many partitions each has."""
    now: float = 0.0
    quiet: bool = False
    """Whether the faults have ended."""
