"""The topics in which coordinators keep what they know: made when one is first needed, with Kafka's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abeyant.broker.controller import Controller
    from abeyant.broker.partition_state import Topic
    from abeyant.broker.settings import Settings


class InternalTopic(NamedTuple):
    """One of them, and the brokers' settings that say how it is made."""

    name: str
    partitions: str
    replicas: str
    config: dict[str, str]
    """The topic's own settings; a value in braces is the broker's setting of that name."""


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
"""Of groups and their offsets."""

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
"""Of transactional ids."""

INTERNAL = {topic.name: topic for topic in (OFFSETS, TRANSACTIONS)}


def present(controller: Controller, settings: Settings, topic: InternalTopic) -> Topic:
    """The topic, made now if it is not there yet: with fewer replicas where there are not enough brokers.

    (Kafka refuses to make it then.) Raises ApiError.
    """
    found = controller.topics.get(topic.name)
    if found is not None:
        return found
    config: dict[str, str | None] = {
        name: str(settings[value[1:-1]]) if value.startswith("{") else value for name, value in topic.config.items()
    }
    replicas = max(min(settings[topic.replicas], len(controller.members)), 1)
    return controller.create_topic(topic.name, settings[topic.partitions], replicas, {}, config)


def partition_for(key: str, count: int) -> int:
    """Which of `count` partitions is a key's: Java's hash of the string, as Kafka does."""
    return java_hash(key) % count


def java_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())`: 31 to the power of its place for each UTF-16 unit, the sign cut off."""
    hashed = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(data), 2):
        hashed = (hashed * 31 + (data[position] << 8 | data[position + 1])) & 0xFFFFFFFF
    return hashed & 0x7FFFFFFF
