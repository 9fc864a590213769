"""The records of consumer groups, byte for byte as Kafka's.

    3  a group: its epoch                    5  a member: its subscription
    6  the target assignment: its epoch      7  the target of one member
    8  the current assignment of a member

Keys are as in the classic records; values use the flexible encoding: lengths are varints, plus one, and each structure
ends with tagged fields: their count, and for each its number, length and data.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from itertools import groupby
from typing import Self

from abeyant.broker.groups.consumer.assignors import Assignment, Partition
from abeyant.broker.groups.consumer.group import Classic, ConsumerMember, MemberState
from abeyant.broker.groups.primitives import Reader, Writer

GROUP, MEMBER, TARGET, TARGET_OF_MEMBER, CURRENT = 3, 5, 6, 7, 8
KINDS = (GROUP, MEMBER, TARGET, TARGET_OF_MEMBER, CURRENT)
_NO_TAGS = 0
# tags
_CLASSIC = 0  # the metadata of a member of the classic protocol
_EPOCHS = 0  # in which a member got partitions of a topic
_PRESENT = 1


class CompactWriter(Writer):
    """Appends types of the flexible encoding."""

    def size(self, size: int) -> Self:
        """Write a length; -1 is null."""
        left = size + 1
        while left > 0x7F:
            self.numbers("B", left & 0x7F | 0x80)
            left >>= 7
        self.numbers("B", left)
        return self

    def compact(self, text: str | None) -> Self:
        """Write a string; None is null."""
        if text is None:
            return self.size(-1)
        return self.compact_data(text.encode())

    def compact_data(self, data: bytes) -> Self:
        """Write bytes."""
        return self.size(len(data)).numbers(f"{len(data)}s", data)

    def partitions(self, assignment: Assignment, since: Mapping[Partition, int] | None = None) -> Self:
        """Append topics with their partitions; with `since`, also the epoch of each partition."""
        topics = [
            (topic, [index for _, index in rows]) for topic, rows in groupby(sorted(assignment), lambda one: one[0])
        ]
        self.size(len(topics))
        for topic, indexes in topics:
            self.numbers("16s", topic.bytes)
            self.size(len(indexes)).numbers(f"{len(indexes)}i", *indexes)
            if since is None:
                self.numbers("B", _NO_TAGS)
                continue
            epochs = [since[topic, index] for index in indexes]
            data = CompactWriter().size(len(epochs)).numbers(f"{len(epochs)}i", *epochs).done()
            self.numbers("BB", 1, _EPOCHS).size(len(data) - 1).numbers(f"{len(data)}s", data)
        return self

    def end(self) -> bytes:
        """Return all of it."""
        self.numbers("B", _NO_TAGS)
        return self.done()


class CompactReader(Reader):
    """Reads types of the flexible encoding."""

    def size(self) -> int:
        """Read a length; -1 is null."""
        value = shift = 0
        while (byte := self.number("B")) > 0x7F:
            value |= (byte & 0x7F) << shift
            shift += 7
        return (value | byte << shift) - 1

    def compact(self) -> str | None:
        """Read a string; None is null."""
        size = self.size()
        return None if size < 0 else self._take(size).decode()

    def compact_data(self) -> bytes:
        """Read bytes."""
        return self._take(max(self.size(), 0))

    def texts(self) -> tuple[str, ...]:
        """Read an array of strings."""
        return tuple(self.compact() or "" for _ in range(self.size()))

    def partitions(self, since: dict[Partition, int] | None = None) -> Assignment:
        """Read topics with their partitions; epochs, where there are some, are added to `since`."""
        found: list[Partition] = []
        for _ in range(self.size()):
            topic = uuid.UUID(bytes=self._take(16))
            rows = [(topic, self.number("i")) for _ in range(self.size())]
            found += rows
            for tag, data in self.tags():
                if tag == _EPOCHS and since is not None:
                    epochs = CompactReader(data)
                    since.update(zip(rows, [epochs.number("i") for _ in range(epochs.size())], strict=True))
        return frozenset(found)

    def tags(self) -> list[tuple[int, bytes]]:
        """Skip the tagged fields of a structure, also those of a later Kafka."""
        return [(self.size() + 1, self._take(self.size() + 1)) for _ in range(self.size() + 1)]


def key(kind: int, group_id: str, member_id: str | None = None) -> bytes:
    """Return the key of a group's record, or of one of its members'."""
    writer = Writer("h", kind).text(group_id)
    return (writer if member_id is None else writer.text(member_id)).done()


def read_key(data: bytes) -> tuple[str, str]:
    """Return the group id, and the member id where the key has one."""
    reader = Reader(data)
    kind = reader.number("h")
    return reader.text(), reader.text() if kind in (MEMBER, TARGET_OF_MEMBER, CURRENT) else ""


def epoch_value(epoch: int) -> bytes:
    """Return the value for the epoch of a group, or of its target."""
    return CompactWriter("hi", 0, epoch).end()


def read_epoch(data: bytes) -> int:
    """Return the epoch of a group, or of its target."""
    return _value(data).number("i")


def member_value(member: ConsumerMember) -> bytes:
    """Return the value with a member's subscription and identity."""
    writer = CompactWriter("h", 0)
    for text in (member.instance_id, member.rack_id, member.client_id, member.client_host):
        writer.compact(text)
    writer.size(len(member.topics))
    for topic in member.topics:
        writer.compact(topic)
    writer.compact(member.regex).numbers("i", member.rebalance_timeout).compact(member.assignor)
    if member.classic is None:
        return writer.end()
    told = CompactWriter("i", member.classic.session_timeout).size(len(member.classic.protocols))
    for name, metadata in member.classic.protocols:
        told.compact(name).compact_data(metadata).numbers("B", _NO_TAGS)
    data = told.end()
    # Kafka leaves the byte that says "present" out of the size.
    writer.numbers("BB", 1, _CLASSIC).size(len(data) - 1).numbers(f"B{len(data)}s", _PRESENT, data)
    return writer.done()


def read_member(data: bytes, known: ConsumerMember) -> ConsumerMember:
    """Return the member with its subscription and identity from a value."""
    reader = _value(data)
    instance_id, rack_id = reader.compact(), reader.compact()
    client_id, client_host = reader.compact() or "", reader.compact() or ""
    topics, regex = reader.texts(), reader.compact()
    rebalance_timeout, assignor = reader.number("i"), reader.compact()
    return known._replace(
        instance_id=instance_id, rack_id=rack_id, client_id=client_id, client_host=client_host, topics=topics,
        regex=regex, rebalance_timeout=rebalance_timeout, assignor=assignor, classic=_read_classic(reader),
    )  # fmt: skip


def _read_classic(reader: CompactReader) -> Classic | None:
    """Return the classic metadata of the first tagged field; other tags are skipped."""
    if reader.size() + 1 == 0 or reader.size() + 1 != _CLASSIC:
        return None
    reader.size()
    if reader.number("b") != _PRESENT:
        return None
    session_timeout = reader.number("i")
    protocols = []
    for _ in range(reader.size()):
        protocols.append((reader.compact() or "", reader.compact_data()))
        reader.tags()
    return Classic(session_timeout, tuple(protocols))


def target_value(assignment: Assignment) -> bytes:
    """Return the value for a member's target assignment."""
    return CompactWriter("h", 0).partitions(assignment).end()


def read_target(data: bytes) -> Assignment:
    """Return a member's target assignment."""
    return _value(data).partitions()


def current_value(member: ConsumerMember) -> bytes:
    """Return the value for a member's current assignment."""
    writer = CompactWriter("hiib", 0, member.epoch, member.previous_epoch, member.state)
    since = {one: member.since.get(one, member.epoch) for one in member.assigned | member.revoking}
    return writer.partitions(member.assigned, since).partitions(member.revoking, since).end()


def read_current(data: bytes, known: ConsumerMember) -> ConsumerMember:
    """Return the member with its current assignment from a value."""
    reader = _value(data)
    since: dict[Partition, int] = {}
    return known._replace(
        epoch=reader.number("i"), previous_epoch=reader.number("i"), state=MemberState(reader.number("b")),
        assigned=reader.partitions(since), revoking=reader.partitions(since), since=since,
    )  # fmt: skip


def _value(data: bytes) -> CompactReader:
    reader = CompactReader(data)
    version = reader.number("h")
    if version != 0:
        raise ValueError(f"version {version} of a consumer group's record; 0 can be read")
    return reader
