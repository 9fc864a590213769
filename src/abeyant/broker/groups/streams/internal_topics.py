"""Compute the partition counts of a topology's internal topics, and report missing topics and wrong counts.

A repartition topic has as many partitions as the largest input topic of a subtopology that writes it, unless the
topology sets its count. A changelog topic has as many partitions as its subtopology has tasks. Topics that are joined
need equal counts.
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
    """The reason why no tasks can be assigned, with a message; None if tasks can be assigned."""


class _TopicsError(Exception):
    """Topics have partition counts that the topology cannot use."""


def configure(topology: Topology, existing: Counts) -> ConfiguredTopology:
    """Return the topology with all partition counts, or a status that says which topics are missing or wrong.

    `existing` are the topics that exist. Raises ApiError: STREAMS_INVALID_TOPOLOGY if no topics could fit the topology.
    """
    absent = {
        name for subtopology in topology.subtopologies for name in subtopology.source_topics if name not in existing
    }
    if absent:
        status = Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(absent)} are missing."
        return ConfiguredTopology(status=status)
    try:
        counts = _count_partitions(topology, existing)
        parts = tuple(_with_counts(subtopology, counts) for subtopology in topology.subtopologies)
        missing = _missing_topics(parts, existing)
    except _TopicsError as error:
        return ConfiguredTopology(status=(Status.INCORRECTLY_PARTITIONED_TOPICS, str(error)))
    tasks = {
        subtopology.subtopology_id: _widest(subtopology, {**counts, **existing})
        for subtopology in topology.subtopologies
    }
    problem = None
    if missing:
        names = _summary(topic.name for topic in missing)
        problem = Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
    return ConfiguredTopology(parts, tasks, missing, problem)


def _count_partitions(topology: Topology, existing: Counts) -> dict[str, int]:
    """Return the partition count of each internal topic."""
    parts = topology.subtopologies
    fixed = {topic.name: topic.partitions for subtopology in parts for topic in subtopology.repartition_source_topics}
    counts = {name: count for name, count in fixed.items() if count}
    fixed_names, flexible = frozenset(counts), frozenset(name for name, count in fixed.items() if not count)
    open_sinks = [
        (subtopology, name)
        for subtopology in parts
        for name in subtopology.repartition_sink_topics
        if name not in counts
    ]
    while open_sinks:
        remaining = []
        for subtopology, name in open_sinks:
            inputs = [counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts]
            inputs += [existing[topic] for topic in subtopology.source_topics]
            if name in counts:
                continue
            if inputs:
                counts[name] = max(inputs)
            else:
                remaining.append((subtopology, name))
        if len(remaining) == len(open_sinks):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology"
                " that cannot be resolved."
            )
        open_sinks = remaining
    if any(name not in counts for name in fixed):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is"
            " never used as a sink topic."
        )
    for subtopology in parts:
        for group in _copartitioned(subtopology):
            _enforce(group, fixed_names, flexible, counts, existing)
    for subtopology in parts:
        if not subtopology.inputs:
            raise _invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
        widest = _widest(subtopology, {**counts, **existing})
        counts.update((topic.name, widest) for topic in subtopology.state_changelog_topics)
    return counts


def _copartitioned(subtopology: Subtopology) -> list[set[str]]:
    try:
        return [
            {subtopology.source_topics[index] for index in group.source_topics}
            | {subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics}
            for group in subtopology.copartition_groups
        ]
    except IndexError:
        name = subtopology.subtopology_id
        raise _invalid(f"A copartition group of subtopology {name} has a topic index out of range.") from None


def _enforce(
    group: Collection[str], fixed: Collection[str], flexible: Collection[str], counts: dict[str, int], existing: Counts
) -> None:
    """Give all repartition topics of a copartition group the same count. Raises _TopicsError if that is impossible."""
    topic_counts = {name: existing.get(name, counts.get(name, 0)) for name in group}
    internal = {name: count for name, count in topic_counts.items() if name in fixed or name in flexible}
    external = {name: count for name, count in topic_counts.items() if name not in internal}
    if external or not fixed:
        reference = external or internal
        if external and len(set(external.values())) > 1:
            raise _TopicsError(f"Following topics do not have the same number of partitions: [{_as_map(external)}]")
        expected = max(reference.values(), default=0)
    else:
        of_fixed = {existing.get(name, counts[name]) for name in fixed}
        if len(of_fixed) > 1:
            raise _TopicsError(f"Following topics do not have the same number of partitions: [{_as_map(internal)}]")
        expected = of_fixed.pop()
    for name, count in internal.items():
        if name in fixed and count != expected:
            raise _TopicsError(
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions"
                f" [{expected}] of the source topic."
            )
        counts[name] = expected


def _with_counts(subtopology: Subtopology, counts: Counts) -> Subtopology:
    return subtopology._replace(
        repartition_source_topics=tuple(_sized(topic, counts) for topic in subtopology.repartition_source_topics),
        state_changelog_topics=tuple(_sized(topic, counts) for topic in subtopology.state_changelog_topics),
    )


def _sized(topic: TopicInfo, counts: Counts) -> TopicInfo:
    return topic._replace(partitions=topic.partitions or counts[topic.name])


def _missing_topics(parts: Iterable[Subtopology], existing: Counts) -> tuple[TopicInfo, ...]:
    missing = {}
    for subtopology in parts:
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            count = existing.get(topic.name)
            if count is None:
                missing[topic.name] = topic
            elif count != topic.partitions:
                raise _TopicsError(
                    f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions},"
                    f" found {count}"
                )
    return tuple(missing[name] for name in sorted(missing))


def _widest(subtopology: Subtopology, counts: Counts) -> int:
    return max((counts[name] for name in subtopology.inputs), default=0)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.streams_invalid_topology, message)


def _summary(names: Iterable[str]) -> str:
    names = sorted(names)
    remaining = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {remaining} additional topics" if remaining > 0 else "")


def _as_map(counts: Counts) -> str:
    """Return counts as Java prints a map."""
    return "{" + ", ".join(f"{name}={count}" for name, count in sorted(counts.items())) + "}"
