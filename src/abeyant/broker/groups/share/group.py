"""A share group (KIP-932): its members, epochs and target assignment. It has no clock."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.assignors import NOTHING, Assignment
from abeyant.broker.wire.schema import ErrorCode


class ShareState(Enum):
    """The state of a share group, as clients see it."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareMember(NamedTuple):
    """A member of a share group."""

    id: str
    epoch: int = 0
    previous_epoch: int = 0
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    assigned: Assignment = NOTHING
    instance_id: None = None  # there are no static members


Partitions = Mapping[uuid.UUID, tuple[str, frozenset[int]]]
"""Partitions by topic id: the topic's name, and the partitions' indexes."""


class StateTopics(NamedTuple):
    """The partitions whose state at the share coordinators is initialized, or being initialized or deleted."""

    initializing: Partitions = MappingProxyType({})
    initialized: Partitions = MappingProxyType({})
    deleting: Mapping[uuid.UUID, str] = MappingProxyType({})

    @property
    def all(self) -> Partitions:
        """Return the partitions whose state is initialized or being initialized."""
        return _union(self.initialized, self.initializing)

    def add_initializing(self, new: Partitions) -> StateTopics:
        """Return a copy with these partitions as initializing."""
        deleting = {topic: name for topic, name in self.deleting.items() if topic not in new}
        return self._replace(initializing=_union(self.initializing, new), deleting=deleting)

    def finish_initializing(self, done: Partitions, *, failed: bool) -> StateTopics:
        """Return a copy in which the partitions `done` are not initializing: they are initialized, unless `failed`."""
        rest = _difference(self.initializing, done)
        return self._replace(
            initializing=rest, initialized=self.initialized if failed else _union(self.initialized, done)
        )

    def without(self, topics: Mapping[uuid.UUID, object], *, deleting: bool) -> StateTopics:
        """Return a copy without `topics`. With `deleting` their deletion begins, else their deletion is complete."""
        remaining = (
            self.deleting if deleting else {topic: name for topic, name in self.deleting.items() if topic not in topics}
        )
        names = {topic: name for topic, (name, _) in self.initialized.items() if topic in topics} if deleting else {}
        return StateTopics(
            {topic: value for topic, value in self.initializing.items() if topic not in topics},
            {topic: value for topic, value in self.initialized.items() if topic not in topics},
            {**remaining, **names},
        )


class ShareGroup:
    """A share group. Only the replay of records changes it."""

    type = "share"
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        """Create an empty group."""
        self.id = group_id
        self.epoch = 1  # as in Kafka, where the first member bumps it to 2
        self.target_epoch = 0
        self.target_time = 0  # when it was computed, in ms since 1970
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Assignment] = {}
        self.topics: dict[str, tuple[object, int]] = {}  # subscribed topics by name: id and partition count

    def __repr__(self) -> str:
        return f"<ShareGroup {self.id} of {len(self.members)} in epoch {self.epoch}>"

    @property
    def state(self) -> ShareState:
        """Return the group's state."""
        return ShareState.STABLE if self.members else ShareState.EMPTY

    @property
    def subscribed(self) -> set[str]:
        """Return the topics to which members subscribe. O(members)."""
        return {topic for member in self.members.values() for topic in member.topics}

    def require(self, member_id: str) -> ShareMember:
        """Return a member. Raises ApiError: UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Member {member_id} is not a member of group {self.id}.")
        return member


def _union(one: Partitions, other: Partitions) -> Partitions:
    result = dict(one)
    for topic, (name, partitions) in other.items():
        result[topic] = (name, partitions | (one[topic][1] if topic in one else frozenset()))
    return result


def _difference(one: Partitions, other: Partitions) -> Partitions:
    rest = {topic: (name, ids - other[topic][1] if topic in other else ids) for topic, (name, ids) in one.items()}
    return {topic: value for topic, value in rest.items() if value[1]}
