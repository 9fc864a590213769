"""Read a cluster's groups, transactions and replicas at the end of a run, for its history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from abeyant.broker.checks.history import Group, Place, Replica, Transaction
from abeyant.broker.groups.classic.group import ClassicGroup
from abeyant.broker.groups.subscription import CONSUMER, read_assignment, subscribed_topics
from abeyant.broker.transactions.transaction import State

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

_ALL = 1 << 30  # bytes


def groups(kafka: Cluster) -> dict[str, Group]:
    """Return all groups, with each member's topics and partitions. O(members and partitions)."""
    by_id: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for number, broker in _running(kafka):
        for shard in broker.group_coordinator.loaded():
            for group in shard.all_groups():
                by_id[group.id].append((number, group))
    return {
        name: Group(
            rows[0][1].state.value,
            tuple(number for number, _ in rows),
            {member.id: _member(kafka, rows[0][1], member) for member in rows[0][1].members.values()},
        )
        for name, rows in sorted(by_id.items())
    }


def _member(kafka: Cluster, group: Any, member: Any) -> tuple[frozenset[str], tuple[Place, ...]]:
    if isinstance(group, ClassicGroup):
        if group.protocol_type != CONSUMER:
            return frozenset(), ()
        owned = read_assignment(member.assignment)[0] if member.assignment else ()
        return subscribed_topics(member.metadata(group.protocol)), tuple(sorted(owned))
    topics = kafka.controller.by_id
    places = ((topics[topic].name, index) for topic, index in member.assigned if topic in topics)
    return frozenset(member.topics), tuple(sorted(places))


def transactions(kafka: Cluster) -> dict[str, Transaction]:
    """Return the states of all transactional ids. O(transactional ids)."""
    by_id: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for number, broker in _running(kafka):
        for shard in broker.transaction_coordinator.loaded():
            for transaction in shard.transactions.values():
                remaining_s = (transaction.now.started_ms + transaction.now.timeout_ms - broker.now_ms()) / 1000
                status = transaction.now.state.shown, (transaction.now.producer_id, transaction.now.epoch)
                by_id[transaction.id].append(
                    (number, (*status, remaining_s if transaction.now.state is State.ONGOING else None))
                )
    return {
        name: Transaction(rows[0][1][0], tuple(number for number, _ in rows), *rows[0][1][1:])
        for name, rows in sorted(by_id.items())
    }


def replicas(kafka: Cluster) -> dict[Place, tuple[Replica, ...]]:
    """Return all replicas of running brokers. O(batches)."""
    by_place = {}
    for topic in kafka.controller.topics.values():
        for state in topic.partitions:
            place = topic.name, state.partition
            rows = []
            for number, broker in _running(kafka):
                partition = broker.partitions.get(place)
                if partition is not None:
                    log, mark = partition.log, partition.high_watermark
                    first = log.start_offset
                    batches = log.read_batches(first, _ALL, mark, min_one=False) if first < mark else []
                    rows.append(
                        Replica(
                            number, partition.leads, number in state.isr, mark,
                            tuple((batch.base_offset, batch.leader_epoch, batch.crc) for batch in batches),
                        )
                    )  # fmt: skip
            by_place[place] = tuple(rows)
    return by_place


def _running(kafka: Cluster) -> Iterator[tuple[int, Any]]:
    return ((number, broker) for number, broker in kafka.brokers.items() if not broker.stopped)
