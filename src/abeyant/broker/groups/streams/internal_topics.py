"""Compute the partition counts of a topology's internal topics, and report missing topics and wrong counts.

A repartition topic has as many partitions as the widest input of a subtopology that writes it, unless the topology
sets its count; a changelog topic as many as its subtopology has tasks. Topics that are joined need equal counts.
Kafka: `InternalTopicManager`, `RepartitionTopics`, `ChangelogTopics`, `CopartitionedTopicsEnforcer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.streams.topology import Subtopology, TopicInfo, Topology
from abeyant.broker.wire.schema import ErrorCode

Counts = Mapping[str, int]
"""Partition counts by topic name."""

_SHOWN = 3  # topics named in a message


class Status(IntEnum):
    """The statuses of a group in heartbeat responses, by Kafka's numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class ConfiguredTopology(NamedTuple):
    """A topology with the partition counts of its internal topics."""

    subtopologies: tuple[Subtopology, ...] = ()
    tasks: Mapping[str, int] = {}
    """The number of tasks of each subtopology, by its id."""
    missing: tuple[TopicInfo, ...] = ()
    """The internal topics that do not exist."""
    status: tuple[Status, str] | None = None
    """The reason why no tasks can be assigned, with a message; None if they can."""


class _TopicsError(Exception):
    """Topics have partition counts that the topology cannot use."""


def configure(topology: Topology, existing: Counts) -> ConfiguredTopology:
    """Return the topology with all partition counts, or with a status that says why not. `existing` are all topics.

    Raises ApiError: STREAMS_INVALID_TOPOLOGY if no topics could make it work.
    """
    absent = {name for one in topology.subtopologies for name in one.source_topics if name not in existing}
    if absent:
        status = Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(absent)} are missing."
        return ConfiguredTopology(status=status)
    try:
        counts = _count_partitions(topology, existing)
        parts = tuple(_with_counts(one, counts) for one in topology.subtopologies)
        missing = _missing_topics(parts, existing)
    except _TopicsError as error:
        return ConfiguredTopology(status=(Status.INCORRECTLY_PARTITIONED_TOPICS, str(error)))
    tasks = {one.subtopology_id: _widest(one, {**counts, **existing}) for one in topology.subtopologies}
    problem = None
    if missing:
        names = _summary(topic.name for topic in missing)
        problem = Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
    return ConfiguredTopology(parts, tasks, missing, problem)


def _count_partitions(topology: Topology, existing: Counts) -> dict[str, int]:
    """Return the partition count of each internal topic."""
    parts = topology.subtopologies
    fixed = {topic.name: topic.partitions for one in parts for topic in one.repartition_source_topics}
    counts = {name: count for name, count in fixed.items() if count}
    fixed_names, flexible = frozenset(counts), frozenset(name for name, count in fixed.items() if not count)
    open_sinks = [(one, name) for one in parts for name in one.repartition_sink_topics if name not in counts]
    while open_sinks:
        left = []
        for one, name in open_sinks:
            inputs = [counts[topic.name] for topic in one.repartition_source_topics if topic.name in counts]
            inputs += [existing[topic] for topic in one.source_topics]
            if name in counts:
                continue
            if inputs:
                counts[name] = max(inputs)
            else:
                left.append((one, name))
        if len(left) == len(open_sinks):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology"
                " that cannot be resolved."
            )
        open_sinks = left
    if any(name not in counts for name in fixed):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is"
            " never used as a sink topic."
        )
    for one in parts:
        for group in _copartitioned(one):
            _enforce(group, fixed_names, flexible, counts, existing)
    for one in parts:
        if not one.inputs:
            raise _invalid(f"No source topics found for subtopology {one.subtopology_id}")
        widest = _widest(one, {**counts, **existing})
        counts.update((topic.name, widest) for topic in one.state_changelog_topics)
    return counts


def _copartitioned(one: Subtopology) -> list[set[str]]:
    try:
        return [
            {one.source_topics[index] for index in group.source_topics}
            | {one.repartition_source_topics[index].name for index in group.repartition_source_topics}
            for group in one.copartition_groups
        ]
    except IndexError:
        raise _invalid(f"A copartition group of subtopology {one.subtopology_id} names no topic.") from None


def _enforce(
    group: Collection[str], fixed: Collection[str], flexible: Collection[str], counts: dict[str, int], existing: Counts
) -> None:
    """Set the counts of the group's repartition topics. Raises _TopicsError if its topics cannot have the same."""
    known = {name: existing.get(name, counts.get(name, 0)) for name in group}
    internal = {name: count for name, count in known.items() if name in fixed or name in flexible}
    external = {name: count for name, count in known.items() if name not in internal}
    if external or not fixed:
        same = external or internal
        if external and len(set(external.values())) > 1:
            raise _TopicsError(f"Following topics do not have the same number of partitions: [{_as_map(external)}]")
        wanted = max(same.values(), default=0)
    else:
        of_fixed = {existing.get(name, counts[name]) for name in fixed}
        if len(of_fixed) > 1:
            raise _TopicsError(f"Following topics do not have the same number of partitions: [{_as_map(internal)}]")
        wanted = of_fixed.pop()
    for name, count in internal.items():
        if name in fixed and count != wanted:
            raise _TopicsError(
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions"
                f" [{wanted}] of the source topic."
            )
        counts[name] = wanted


def _with_counts(one: Subtopology, counts: Counts) -> Subtopology:
    return one._replace(
        repartition_source_topics=tuple(_sized(topic, counts) for topic in one.repartition_source_topics),
        state_changelog_topics=tuple(_sized(topic, counts) for topic in one.state_changelog_topics),
    )


def _sized(topic: TopicInfo, counts: Counts) -> TopicInfo:
    return topic._replace(partitions=topic.partitions or counts[topic.name])


def _missing_topics(parts: Iterable[Subtopology], existing: Counts) -> tuple[TopicInfo, ...]:
    missing = {}
    for one in parts:
        for topic in (*one.repartition_source_topics, *one.state_changelog_topics):
            found = existing.get(topic.name)
            if found is None:
                missing[topic.name] = topic
            elif found != topic.partitions:
                raise _TopicsError(
                    f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions},"
                    f" found {found}"
                )
    return tuple(missing[name] for name in sorted(missing))


def _widest(one: Subtopology, counts: Counts) -> int:
    return max((counts[name] for name in one.inputs), default=0)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.streams_invalid_topology, message)


def _summary(names: Iterable[str]) -> str:
    names = sorted(names)
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} additional topics" if more > 0 else "")


def _as_map(counts: Counts) -> str:
    """Return counts as Java prints a map."""
    return "{" + ", ".join(f"{name}={count}" for name, count in sorted(counts.items())) + "}"
