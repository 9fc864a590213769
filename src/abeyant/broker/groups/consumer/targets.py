"""Compute the target assignments of consumer groups, with an assignor, and resolve their patterns to topics.

A pattern is resolved for the whole group, with the rights of the member whose heartbeat causes this. It is resolved
when it is new to the group, when topics were created, and every `group.consumer.regex.refresh.interval.ms`. Kafka:
`TopicRegexResolver`, which runs in the background and at most every 10 s; here the heartbeat resolves at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from types import MappingProxyType
from typing import TYPE_CHECKING

from abeyant.broker.groups.consumer import records
from abeyant.broker.groups.consumer.assignors import ASSIGNORS, Assignment
from abeyant.broker.groups.consumer.group import (
    ConsumerGroup,
    ConsumerMember,
    Resolved,
    Subscription,
    preferred_assignor,
)
from abeyant.broker.groups.consumer.patterns import matches
from abeyant.broker.groups.subscription import NamedPartition

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry
    from abeyant.broker.partition_state import Topic

Subscribed = dict[str, tuple[object, int]]
"""The id and partition count of each topic, by topic name."""

MayDescribe = Callable[[str], bool]
"""Returns whether a client may describe a topic."""

_NO_PATTERNS: Mapping[str, Resolved] = MappingProxyType({})


class Targets:
    """The computation of target assignments for one shard's groups."""

    def __init__(
        self,
        topics: Callable[[], Mapping[str, Topic]],
        by_id: Callable[[], Mapping[uuid.UUID, Topic]],
        now_ms: Callable[[], int],
        version: Callable[[], int],
        refresh_interval: int,
    ) -> None:
        """`topics` and `by_id` return the cluster's topics, by name and by id; `now_ms` returns the time.

        `version` returns a number that changes when a topic is created. Patterns are resolved again every
        `refresh_interval` ms.
        """
        self._now_ms = now_ms
        self._version = version
        self._refresh_interval = refresh_interval
        self._topics = topics
        self._by_id = by_id

    def by_name(self) -> Mapping[str, Topic]:
        """Return the cluster's topics by name."""
        return self._topics()

    def find_topics(
        self, subscriptions: Iterable[Subscription], resolved: Mapping[str, Resolved] = _NO_PATTERNS
    ) -> Subscribed:
        """Return the existing topics of these subscriptions, with their ids and partition counts."""
        topics = self._topics()
        names = {name for subscription in subscriptions for name in _names(subscription, resolved)}
        return {name: (topics[name].id, len(topics[name].partitions)) for name in sorted(names) if name in topics}

    def resolve(
        self, group: ConsumerGroup, subscriptions: Collection[Subscription], may_describe: MayDescribe
    ) -> Mapping[str, Resolved]:
        """Return the topics of the group's patterns. If due, resolve all patterns again: O(topics x patterns)."""
        regexes = {regex for _, regex in subscriptions if regex}
        current = {regex: resolution for regex, resolution in group.resolved.items() if regex in regexes}
        version, now = self._version(), self._now_ms()
        if len(current) == len(regexes) and not any(
            resolution.version != version or now > resolution.time + self._refresh_interval
            for resolution in current.values()
        ):
            return current
        topics_by_regex = {regex: {name for name in self._topics() if matches(regex, name)} for regex in regexes}
        allowed = {name for name in set().union(*topics_by_regex.values()) if may_describe(name)}
        return {regex: Resolved(frozenset(names & allowed), version, now) for regex, names in topics_by_regex.items()}

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
        resolved: Mapping[str, Resolved],
    ) -> dict[str, Assignment]:
        """Return the target assignment for an epoch. Add the records of changes to `entries`."""
        ids: dict[str, uuid.UUID] = {name: self._topics()[name].id for name in topics}
        names = {
            subscription: _names(subscription, resolved)
            for subscription in {member.subscription for member in members.values()}
        }
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


def _names(subscription: Subscription, resolved: Mapping[str, Resolved]) -> Set[str]:
    """Return the topic names of a subscription, including the topics of its pattern."""
    topics, regex = subscription
    resolution = resolved.get(regex) if regex else None
    return set(topics) if resolution is None else resolution.topics.union(topics)
