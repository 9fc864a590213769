"""The internal topics of coordinators: created with Kafka's settings when first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abeyant.broker.controller import Controller
    from abeyant.broker.partition_state import Topic
    from abeyant.broker.settings import Settings


class InternalTopic(NamedTuple):
    """One internal topic. `partitions` and `replicas` are names of broker settings that hold these numbers."""

    name: str
    partitions: str
    replicas: str
    config: dict[str, str]
    """The topic's configuration. A value in braces stands for the value of the broker setting of that name."""


OFFSETS = InternalTopic(
    "__consumer_offsets",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "{offsets.topic.segment.bytes}",
    },
)
"""Holds groups and their offsets."""

TRANSACTIONS = InternalTopic(
    "__transaction_state",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "{transaction.state.log.min.isr}",
        "segment.bytes": "{transaction.state.log.segment.bytes}",
        "unclean.leader.election.enable": "false",
    },
)
"""Holds the state of transactional ids."""

SHARES = InternalTopic(
    "__share_group_state",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "{share.coordinator.state.topic.min.isr}",
        "retention.ms": "-1",
        "segment.bytes": "{share.coordinator.state.topic.segment.bytes}",
    },
)
"""Holds the state of share partitions."""

INTERNAL = {topic.name: topic for topic in (OFFSETS, TRANSACTIONS, SHARES)}


def ensure_topic(controller: Controller, settings: Settings, topic: InternalTopic) -> Topic:
    """Return the topic. Create it if it does not exist.

    With too few brokers the topic gets fewer replicas; Kafka would refuse to create the topic. Raises ApiError.
    """
    existing = controller.topics.get(topic.name)
    if existing is not None:
        return existing
    config: dict[str, str | None] = {
        name: str(settings[value[1:-1]]) if value.startswith("{") else value for name, value in topic.config.items()
    }
    replicas = max(min(settings[topic.replicas], len(controller.members)), 1)
    return controller.create_topic(topic.name, settings[topic.partitions], replicas, {}, config)


def partition_for(key: str, count: int) -> int:
    """Return the partition of a key in a topic of `count` partitions, by Java's hash of the key, as in Kafka."""
    return java_hash(key) % count


def java_hash(text: str) -> int:
    """Return `Utils.abs(text.hashCode())` of Java: a polynomial in 31 over UTF-16 units, its sign bit cleared."""
    hashed = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(data), 2):
        hashed = (hashed * 31 + (data[position] << 8 | data[position + 1])) & 0xFFFFFFFF
    return hashed & 0x7FFFFFFF
