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
    """A broker's response to one partition of a produce request, as sent; the client may not have received it."""

    at: float
    client: str
    process: str
    topic: str
    partition: int
    offset: int
    """The first record's offset; -1 in an error response."""
    items: tuple[Item, ...]
    acks: int
    error: str
    """Kafka's name of the error; NONE for an acknowledged request."""
    producer: tuple[int, int]
    """Producer id and epoch; (-1, -1) without idempotence."""
    transactional_id: str | None
    since: float | None = None
    """The time at which the request arrived."""
    in_sync: tuple[int, int] | None = None
    """In-sync replicas known to the leader, and `min.insync.replicas`; None if the request has several partitions."""


class Sent(NamedTuple):
    """A record that a program gave to a producer, in order of sending; it may never be acknowledged."""

    at: float
    producer: str
    """The producer's name in this run: its process and a number."""
    topic: str
    item: Item
    result: Callable[[], tuple[int, int] | None]
    """Returns the record's partition and offset; None unless it is acknowledged."""


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
    """The time at which the request arrived."""
    producer: tuple[int, int] = (-1, -1)
    """Producer id and epoch of a commit in a transaction."""
    member: str = ""
    """The committing member's id; "" for none."""


class Found(NamedTuple):
    """A broker's response to one partition of an OffsetFetch, by which a group reads its committed offset."""

    at: float
    group: str
    topic: str
    partition: int
    offset: int
    """The committed offset; -1 if there is none."""
    since: float
    """The time at which the request arrived."""


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

    `api` is JoinGroup, SyncGroup, Heartbeat or LeaveGroup in the classic protocol. In the consumer protocol it is
    ConsumerGroupHeartbeat, and `generation` is the member epoch.
    """

    at: float
    api: str
    group: str
    member: str
    generation: int
    error: str
    since: float
    """The time at which the request arrived."""
    session: float = 0.0
    """The session time-out that a JoinGroup requests, in seconds."""
    assigned: frozenset[Place] | None = None
    """The partitions that a ConsumerGroupHeartbeat assigns; None if they are unchanged."""


class Ended(NamedTuple):
    """A broker's response to the end of a transaction."""

    at: float
    client: str
    process: str
    transactional_id: str
    producer: tuple[int, int]
    committed: bool
    """Whether the request was a commit, not an abort."""
    error: str
    since: float | None = None
    """The time at which the request arrived."""


class Joined(NamedTuple):
    """The start of a member's assignment, as its consumer sees it."""

    at: float
    client: str
    process: str
    group: str | None
    assignment: int
    """The assignment's number, unique in the run."""
    partitions: tuple[Place, ...]


class Handed(NamedTuple):
    """A record that a consumer has handed to the program."""

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
    """Whether the consumer's isolation level is read_committed."""


class Sought(NamedTuple):
    """A seek: the program has set a consumer's position, back or forward."""

    at: float
    client: str
    process: str
    assignment: int
    topic: str
    partition: int
    offset: int
    """The new position; -1 if the broker chooses it: the beginning, the end, or the committed offset."""
    after: int = 0
    """How many records had been handed to programs before the seek: its place among `History.handed`."""


class Event(NamedTuple):
    """An action on the cluster or its clients: a fault, a start, a kill, or the end of the faults."""

    at: float
    what: str
    """A description in Kafka's words: "broker 2 pauses for 9 s"."""
    subject: str = ""
    """What the event affects: "broker 2", a process, a group."""
    until: float | None = None


class Stored(NamedTuple):
    """A record that can be read at the end."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    item: Item


class Group(NamedTuple):
    """The final state of a group."""

    state: str
    """Kafka's name of the state."""
    coordinators: tuple[int, ...]
    """The brokers that coordinate it, normally one."""
    members: dict[str, tuple[frozenset[str], tuple[Place, ...]]]
    """Each member's subscribed topics and assigned partitions, by member id."""


class Transaction(NamedTuple):
    """The final state of a transactional id."""

    state: str
    """Kafka's name of the state."""
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
    """The batches below its high watermark: first offset, leader epoch and CRC of each."""


@dataclass
class History:
    """The events of one run and its final state, as checks read them. Lists are in the order of the events."""

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
    """The records that a read_uncommitted consumer can read now, those of aborted and open transactions included."""
    stored_committed: list[Stored] = field(default_factory=list)
    """The records that a read_committed consumer can read now."""
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Committed offsets now, by group, topic and partition."""
    groups: dict[str, Group] = field(default_factory=dict)
    """The groups now, by id."""
    transactions: dict[str, Transaction] = field(default_factory=dict)
    """The transactional ids now."""
    replicas: dict[Place, tuple[Replica, ...]] = field(default_factory=dict)
    """The replicas of each partition now, internal topics included."""
    partitions: dict[str, int] = field(default_factory=dict)
    """The number of partitions of each topic."""
    now: float = 0.0
    quiet: bool = False
    """Whether the faults have ended."""
