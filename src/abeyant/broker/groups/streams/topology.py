"""The topology of a Kafka Streams application, as members send it and records keep it.

The fields have the names of the messages and records, which are read and written without conversion.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class KeyValue(NamedTuple):
    """A setting of a topic, or a tag of a client."""

    key: str
    value: str


class TopicInfo(NamedTuple):
    """An internal topic. A count of 0 means that the topology does not set it."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: tuple[KeyValue, ...]


class CopartitionGroup(NamedTuple):
    """Topics that need equally many partitions, as indexes into the arrays of their subtopology."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(NamedTuple):
    """A part of the topology, which runs as one task for each partition."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the topics that the subtopology reads: source topics and repartition topics."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


class Topology(NamedTuple):
    """The topology of an application, with its epoch, which counts the versions."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    @property
    def required_topics(self) -> tuple[str, ...]:
        """Return the topics that have to exist before tasks are assigned, sorted."""
        names = {name for one in self.subtopologies for name in one.inputs}
        names.update(topic.name for one in self.subtopologies for topic in one.state_changelog_topics)
        return tuple(sorted(names))

    @property
    def all_topics(self) -> tuple[str, ...]:
        """Return all topics that the topology reads or writes, sorted."""
        sinks = {name for one in self.subtopologies for name in one.repartition_sink_topics}
        return tuple(sorted(sinks.union(self.required_topics)))

    def reader_of(self, topic: str) -> str | None:
        """Return the id of the subtopology that reads a topic. O(topics)."""
        return next((one.subtopology_id for one in self.subtopologies if topic in one.inputs), None)


def read_topology(value: Any) -> Topology:
    """Return the topology in a request or a record."""
    parts = sorted((_subtopology(one) for one in value.subtopologies), key=lambda one: one.subtopology_id)
    return Topology(value.epoch, tuple(parts))


def _subtopology(value: Any) -> Subtopology:
    return Subtopology(
        value.subtopology_id,
        tuple(value.source_topics),
        tuple(value.source_topic_regex),
        tuple(map(_topic_info, value.state_changelog_topics)),
        tuple(value.repartition_sink_topics),
        tuple(map(_topic_info, value.repartition_source_topics)),
        tuple(
            CopartitionGroup(
                tuple(one.source_topics), tuple(one.source_topic_regex), tuple(one.repartition_source_topics)
            )
            for one in value.copartition_groups
        ),
    )


def _topic_info(value: Any) -> TopicInfo:
    configs = tuple(KeyValue(one.key, one.value) for one in value.topic_configs)
    return TopicInfo(value.name, value.partitions, value.replication_factor, configs)
