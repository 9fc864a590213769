"""The metadata that consumers exchange through the coordinator (ConsumerProtocol), as far as the coordinator reads it.

A joining consumer sends its subscription and, from version 1 on, the partitions that it owns. The group's leader sends
the assignment of each member. In a consumer group the coordinator assigns instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from abeyant.broker.coordinator.schema import Field, Nullable, Schema, version_of
from abeyant.broker.wire.schema import Message

CONSUMER = "consumer"
"""The protocol type of consumers. Metadata of other types, for instance Connect's, is not read."""

NamedPartition = tuple[str, int]
"""A topic's name and a partition's index."""

_LATEST = 3  # the highest known version
_TOPIC = Schema("a topic", topic="string", indexes=["int32"])
_SUBSCRIPTION = Schema(
    "a consumer's subscription", _LATEST, topics=["string"], user_data=Nullable("bytes"),
    owned=Field([_TOPIC], since=1, default=()), generation=Field("int32", since=2),
    rack_id=Field(Nullable("string"), since=3),
)  # fmt: skip
_ASSIGNMENT = Schema("a consumer's assignment", _LATEST, topics=[_TOPIC], user_data=Nullable("bytes"))


class Subscription(NamedTuple):
    """A consumer's subscription."""

    version: int
    topics: tuple[str, ...]
    owned: tuple[NamedPartition, ...] = ()
    """The partitions that the consumer has now."""
    rack_id: str | None = None


def read_subscription(metadata: bytes) -> Subscription:
    """Decode a ConsumerProtocolSubscription of any version. Raises ValueError if the bytes are something else."""
    version, value = _read(_SUBSCRIPTION, metadata)
    return Subscription(version, value.topics, _partitions(value.owned), value.rack_id)


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Return the topics of a consumer's subscription; an empty set if `metadata` is no subscription."""
    try:
        return frozenset(read_subscription(metadata).topics)
    except ValueError:
        return frozenset()


def read_assignment(assignment: bytes) -> tuple[tuple[NamedPartition, ...], bytes]:
    """Return the partitions and a custom assignor's user data, from a ConsumerProtocolAssignment of any version.

    Raises ValueError if the bytes are something else.
    """
    value = _read(_ASSIGNMENT, assignment)[1]
    return _partitions(value.topics), value.user_data or b""


def assignment_value(version: int, partitions: Iterable[NamedPartition]) -> bytes:
    """Encode a ConsumerProtocolAssignment for a consumer whose subscription has this version."""
    topics = [
        Message(topic=topic, indexes=[index for _, index in rows])
        for topic, rows in groupby(sorted(partitions), itemgetter(0))
    ]
    return _ASSIGNMENT.write(min(version, _LATEST), Message(topics=topics, user_data=None))


def _read(schema: Schema, data: bytes) -> tuple[int, Any]:
    """Decode the version and the fields. From a later version than `_LATEST`, decode the known fields."""
    try:
        version = version_of(data)
    except struct.error as error:
        raise ValueError(f"cannot decode {schema.name}: {error}") from error
    return version, schema.read(data, min(version, _LATEST))


def _partitions(topics: Iterable[Any]) -> tuple[NamedPartition, ...]:
    return tuple((topic.topic, index) for topic in topics for index in topic.indexes)
