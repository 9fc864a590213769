"""Seed a cluster with records and committed offsets; read its groups, their lag, and transactions.

Use from the loop's thread only. Users call these functions through the methods of `Cluster`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.api.coordinators import known_groups
from abeyant.broker.api.leading import UnknownNameError, coordinator_of, leader_of, leading, shards_of
from abeyant.broker.api.target import check_text
from abeyant.broker.coordinator.topics import OFFSETS, TRANSACTIONS, ensure_topic
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import ClassicGroup
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.groups.state import AnyGroup
from abeyant.broker.log import LogError
from abeyant.broker.log.batch import Batch, make_batch
from abeyant.broker.log.records import Record, encode
from abeyant.broker.transactions.transaction import State
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError, did_you_mean

_LATEST = (1 << 63) - 1  # milliseconds


class NewRecord(NamedTuple):
    """A record for `Cluster.seed` to append. What `Cluster.records` returns is a `Record`."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    """Milliseconds since 1970; None for the cluster's current time."""


Seed = NewRecord  # its former name


class GroupMember(NamedTuple):
    """One member of a group."""

    id: str
    instance_id: str | None
    client_id: str
    host: str


class GroupOffset(NamedTuple):
    """A group's committed offset of one partition."""

    topic: str
    partition: int
    offset: int
    metadata: str
    lag: int | None
    """High watermark minus committed offset; None if no leader runs, or if the topic has been deleted."""


class GroupState(NamedTuple):
    """A group, its members, and its committed offsets."""

    id: str
    protocol: str
    """"classic", "consumer" (KIP-848), "share" (KIP-932) or "streams" (KIP-1071)."""
    state: str
    """Kafka's name of the state: "Stable", "PreparingRebalance", "Empty" and so on."""
    generation: int
    """The generation of a classic group; the group epoch with the other protocols."""
    coordinator: int
    members: tuple[GroupMember, ...]
    offsets: tuple[GroupOffset, ...]


class TransactionState(NamedTuple):
    """The state of a transactional id."""

    id: str
    state: str
    """Kafka's name of the state: "Ongoing", "CompleteCommit" and so on."""
    producer_id: int
    epoch: int
    coordinator: int
    timeout: float
    """The producer's `transaction.timeout.ms`, in seconds."""
    left: float | None
    """Seconds until an open transaction times out, negative if overdue; None if none is open."""
    partitions: tuple[tuple[str, int], ...]


def seed(cluster: BaseCluster, topic: str, partition: int, records: object) -> list[int]:
    """Append records to the leader's log. Return their offsets. Raises AbeyantError if they cannot be appended."""
    partition_name = f"{topic!r}, partition {partition}"
    replica = leading(cluster, topic, partition, "seed")
    batch = seed_batch(records, replica.broker.now_ms())
    if batch is None:
        return []
    try:
        appended = replica.append(batch.data, all_in_sync=False)
    except ApiError as error:
        raise AbeyantError(f"cannot seed {partition_name}: {error.message or error.code.name.upper()}") from None
    except LogError as error:
        raise AbeyantError(f"cannot seed {partition_name}: {error}") from None
    cluster.network.settle()
    return list(range(appended.base_offset, appended.last_offset + 1))


def seed_batch(records: object, now_ms: int) -> Batch | None:
    """Return one batch of these records; None if `records` is empty. Raises AbeyantError for an invalid record."""
    if not isinstance(records, Iterable) or isinstance(records, (bytes, str)):
        raise AbeyantError(f"records must be a list of bytes, None or NewRecord, not {records!r}")
    rows = [_record(number, item, now_ms) for number, item in enumerate(records)]
    if not rows:
        return None
    base = rows[0].timestamp
    return make_batch(
        encode(rows, 0, base), record_count=len(rows), base_timestamp=base,
        max_timestamp=max(row.timestamp for row in rows),
    )  # fmt: skip


def _record(number: int, item: object, now: int) -> Record:
    plain = isinstance(item, bytes) or item is None
    record = item if isinstance(item, NewRecord) else NewRecord(item) if plain else None  # type: ignore[arg-type]
    if record is None:
        raise AbeyantError(f"record {number} must be bytes, None or a NewRecord, not {item!r}")
    for name, value in (("value", record.value), ("key", record.key)):
        if value is not None and not isinstance(value, bytes):
            raise AbeyantError(f"record {number}: {name} must be bytes or None, not {value!r}")
    timestamp = now if record.timestamp is None else record.timestamp
    if type(timestamp) is not int or abs(timestamp) > _LATEST:
        raise AbeyantError(f"record {number}: timestamp must be milliseconds, an int of 64 bits, not {timestamp!r}")
    return Record(number, timestamp, record.key, record.value, _headers(number, record.headers))


def _headers(number: int, headers: object) -> tuple[tuple[str, bytes | None], ...]:
    """Return a record's headers. Raises AbeyantError unless each is a pair of a name and bytes or None."""
    pairs = tuple(headers) if isinstance(headers, (list, tuple)) else (headers,)
    for pair in pairs:
        if (
            not isinstance(pair, (list, tuple))
            or len(pair) != 2
            or not isinstance(pair[0], str)
            or not isinstance(pair[1], (bytes, type(None)))
        ):
            raise AbeyantError(f'record {number}: headers must be like (("name", b"value"),), not {headers!r}')
        check_text(f"record {number}: header", pair[0])
    return tuple((name, value) for name, value in pairs)


def commit(cluster: BaseCluster, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets for a group without members; create the group if needed. Raises AbeyantError if that fails."""
    check_text("group", group)
    rows = {}
    for (topic, partition), offset in offsets.items():
        cluster._partition_state(topic, partition)
        if type(offset) is not int or offset < 0:
            raise AbeyantError(f"the offset of {topic}-{partition} must be 0 or more, not {offset!r}")
        rows[OffsetKey(group, topic, partition)] = offset
    if not rows:
        raise AbeyantError("there are no offsets to commit: give a dict like {('topic', 0): 100}")
    try:
        ensure_topic(cluster.controller, cluster.settings, OFFSETS)
        cluster.network.settle()
        broker = coordinator_of(cluster, OFFSETS, group, f"group {group!r}")
        assert broker is not None
        shard = broker.group_coordinator.shard(group)
        members = shard.members(group)
        if members:
            raise AbeyantError(
                f"group {group!r} has {len(members)} members, which commit for themselves: stop them first"
            )
        shard.group_or_new(group)
    except ApiError as error:
        raise AbeyantError(f"cannot commit for group {group!r}: {error.message or error.code.name.upper()}") from None
    now = broker.now_ms()
    results: list[ErrorCode] = []
    shard.commit({key: Offset(offset, -1, "", now) for key, offset in rows.items()}, results.append)
    cluster.network.settle()
    if results != [ErrorCode.none]:
        reason = results[0].name.upper() if results else "an in-sync replica has not replicated it; is a broker paused?"
        raise AbeyantError(f"cannot commit for group {group!r}: {reason}")


def leaders(cluster: BaseCluster) -> Counter[int]:
    """Return how many partitions each broker leads in the controller's metadata; brokers may lag. O(partitions)."""
    topics = list(cluster.controller.topics.values())
    return Counter(partition.leader for topic in topics for partition in list(topic.partitions))


def groups(cluster: BaseCluster) -> list[str]:
    """Return all group ids, sorted. Raises AbeyantError if a partition of `__consumer_offsets` has no leader."""
    return sorted(group.id for _, shard in _group_shards(cluster, "the groups") for group in shard.all_groups())


def group_state(cluster: BaseCluster, name: str) -> GroupState:
    """Return a group's state.

    Raises UnknownNameError for an unknown group, AbeyantError if its coordinator does not run, or still loads it.
    """
    check_text("group", name)
    for number, shard in _group_shards(cluster, f"group {name!r}", name):
        group = shard.find(name)
        if group is not None:
            return _group_state(cluster, number, shard, group)
    raise UnknownNameError(f"there is no group {name!r}{did_you_mean(name, known_groups(cluster))}")


def _group_shards(cluster: BaseCluster, what: str, group: str | None = None) -> Iterator[tuple[int, GroupShard]]:
    return shards_of(cluster, OFFSETS, lambda broker: broker.group_coordinator, what, group)


def _group_state(cluster: BaseCluster, coordinator: int, shard: GroupShard, group: AnyGroup) -> GroupState:
    members = tuple(
        GroupMember(member.id, member.instance_id, member.client_id, member.client_host)
        for member in group.members.values()
    )
    offsets = tuple(
        GroupOffset(topic, partition, offset.offset, offset.metadata, _lag(cluster, topic, partition, offset.offset))
        for (topic, partition), offset in sorted(shard.offsets.all_committed(group.id, shard.replicated))
    )
    generation = group.generation if isinstance(group, ClassicGroup) else group.epoch
    protocol = "classic" if isinstance(group, ClassicGroup) else group.type
    return GroupState(group.id, protocol, group.state.value, generation, coordinator, members, offsets)


def _lag(cluster: BaseCluster, topic: str, partition: int, offset: int) -> int | None:
    topic_state = cluster.controller.topics.get(topic)
    if topic_state is None or partition >= len(topic_state.partitions):
        return None
    replica = leader_of(cluster, topic, partition)
    return None if replica is None else max(replica.high_watermark - offset, 0)


def transactions(cluster: BaseCluster) -> list[TransactionState]:
    """Return the states of all transactional ids, sorted by id.

    Raises AbeyantError if a partition of `__transaction_state` has no running leader.
    """
    states = []
    shards = shards_of(cluster, TRANSACTIONS, lambda broker: broker.transaction_coordinator, "the transactional ids")
    for number, shard in shards:
        now_ms = cluster.brokers[number].now_ms()
        for transaction in shard.transactions.values():
            now = transaction.now
            open_ = now.state is State.ONGOING
            remaining = (now.started_ms + now.timeout_ms - now_ms) / 1000 if open_ else None
            keys = tuple(sorted(shard.partitions_of(transaction)))
            states.append(
                TransactionState(
                    transaction.id,
                    now.state.shown,
                    now.producer_id,
                    now.epoch,
                    number,
                    now.timeout_ms / 1000,
                    remaining,
                    keys,
                )
            )
    return sorted(states)
