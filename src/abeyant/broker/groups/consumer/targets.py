"""Compute the target assignments of consumer groups, with an assignor."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from abeyant.broker.groups.consumer import records
from abeyant.broker.groups.consumer.assignors import ASSIGNORS, Assignment
from abeyant.broker.groups.consumer.group import ConsumerGroup, ConsumerMember, Subscription, preferred_assignor
from abeyant.broker.groups.consumer.patterns import matches
from abeyant.broker.groups.subscription import NamedPartition

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry
    from abeyant.broker.partition_state import Topic

Subscribed = dict[str, tuple[object, int]]
"""Topic name -> id and partition count."""


class Targets:
    """Computes the target assignments of one shard's groups."""

    def __init__(
        self,
        topics: Callable[[], Mapping[str, Topic]],
        by_id: Callable[[], Mapping[uuid.UUID, Topic]],
        now_ms: Callable[[], int],
    ) -> None:
        """`topics` and `by_id` return the cluster's topics, by name and by id; `now_ms` returns the time."""
        self._now_ms = now_ms
        self._topics = topics
        self._by_id = by_id

    def by_name(self) -> Mapping[str, Topic]:
        """Return the cluster's topics by name."""
        return self._topics()

    def find_topics(self, subscriptions: Iterable[Subscription]) -> Subscribed:
        """Return the existing topics of these subscriptions, with their ids and partition counts."""
        topics = self._topics()
        names = {name for one in subscriptions for name in self._names(one)}
        return {name: (topics[name].id, len(topics[name].partitions)) for name in sorted(names) if name in topics}

    def to_names(self, assignment: Assignment) -> list[NamedPartition]:
        """Return an assignment with topic names instead of ids, without deleted topics."""
        topics = self._by_id()
        return [(topics[topic].name, index) for topic, index in assignment if topic in topics]

    def to_ids(self, partitions: tuple[NamedPartition, ...]) -> Assignment:
        """Return an assignment with topic ids instead of names, without deleted topics."""
        topics = self._topics()
        return frozenset((topics[name].id, index) for name, index in partitions if name in topics)

    def compute(
        self,
        group: ConsumerGroup,
        members: Mapping[str, ConsumerMember],
        topics: Subscribed,
        epoch: int,
        entries: list[Entry],
    ) -> dict[str, Assignment]:
        """Return the target assignment for an epoch. Add the records of changes to `entries`."""
        ids: dict[str, uuid.UUID] = {name: self._topics()[name].id for name in topics}
        names = {one: self._names(one) for one in {member.subscription for member in members.values()}}
        subscribed = {
            member.id: frozenset(ids[name] for name in names[member.subscription] if name in ids)
            for member in members.values()
        }
        counts = {ids[topic]: count for topic, (_, count) in topics.items()}
        target = ASSIGNORS[preferred_assignor(members.values())](subscribed, counts, group.target)
        for member_id, assignment in target.items():
            if group.target.get(member_id) != assignment:
                entries.append(records.target_of_member(group.id, member_id, assignment))
        entries.append(records.target(group.id, epoch, self._now_ms()))
        return target

    def _names(self, subscription: Subscription) -> set[str]:
        """Return the topic names of a subscription, including those that match its pattern."""
        topics, regex = subscription
        names = set(topics)
        if regex:
            names.update(name for name, topic in self._topics().items() if not topic.internal and matches(regex, name))
        return names
