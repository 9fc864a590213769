"""The metadata that consumers exchange through the coordinator (ConsumerProtocol), as far as the coordinator reads it.

A consumer that joins sends its subscription and, from version 1 on, its partitions. The leader sends the assignment of
each member. In a consumer group the coordinator takes the leader's place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from abeyant.broker.groups.primitives import Reader, Writer

CONSUMER = "consumer"
"""The protocol type of consumers. The metadata of others, of Connect for instance, is not read."""

NamedPartition = tuple[str, int]
"""A topic's name, and a partition's index."""

_LATEST = 3  # the version
_OWNED_SINCE, _GENERATION_SINCE, _RACK_SINCE = 1, 2, 3


class Subscription(NamedTuple):
    """A consumer's subscription."""

    version: int
    topics: tuple[str, ...]
    owned: tuple[NamedPartition, ...] = ()
    """What it has, and will go on with if it may."""
    rack_id: str | None = None


def read_subscription(metadata: bytes) -> Subscription:
    """Read a ConsumerProtocolSubscription of any version. Raises ValueError for other bytes."""
    try:
        reader = Reader(metadata)
        version = _version(reader)
        topics = tuple(reader.text() for _ in range(reader.number("i")))
        owned: tuple[NamedPartition, ...] = ()
        rack_id = None
        reader.data()  # of a custom assignor
        if version >= _OWNED_SINCE:
            owned = _partitions(reader)
        if version >= _GENERATION_SINCE:
            reader.number("i")
        if version >= _RACK_SINCE:
            rack_id = reader.nullable()
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"no subscription of a consumer: {error}") from error
    return Subscription(version, topics, owned, rack_id)


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Return the topics of a consumer's subscription; none for metadata that is no consumer's."""
    try:
        return frozenset(read_subscription(metadata).topics)
    except ValueError:
        return frozenset()


def read_assignment(assignment: bytes) -> tuple[tuple[NamedPartition, ...], bytes]:
    """Read a ConsumerProtocolAssignment of any version: the partitions, and a custom assignor's user data.

    Raises ValueError for other bytes.
    """
    try:
        reader = Reader(assignment)
        _version(reader)
        return _partitions(reader), reader.data()
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"no assignment of a consumer: {error}") from error


def assignment_value(version: int, partitions: Iterable[NamedPartition]) -> bytes:
    """Return a ConsumerProtocolAssignment, for a consumer whose subscription has this version."""
    rows = [(topic, [index for _, index in of]) for topic, of in groupby(sorted(partitions), lambda one: one[0])]
    writer = Writer("hi", min(version, _LATEST), len(rows))
    for topic, indexes in rows:
        writer.text(topic).numbers(f"i{len(indexes)}i", len(indexes), *indexes)
    return writer.numbers("i", -1).done()  # no user data


def _version(reader: Reader) -> int:
    version = reader.number("h")
    if version < 0:
        raise ValueError(f"version {version} of what a consumer says; 0 is the first")
    return version


def _partitions(reader: Reader) -> tuple[NamedPartition, ...]:
    found: list[NamedPartition] = []
    for _ in range(reader.number("i")):
        topic = reader.text()
        found += [(topic, reader.number("i")) for _ in range(reader.number("i"))]
    return tuple(found)
