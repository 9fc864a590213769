"""The protocol of share groups (KIP-932): members send heartbeats, and the responses list the members' partitions.

A partition is assigned once its state exists at its share coordinator. Kafka: `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from abeyant.broker.coordinator.shard import Entry, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.assignors import NOTHING, Assignment
from abeyant.broker.groups.share import records
from abeyant.broker.groups.share.assignor import assign
from abeyant.broker.groups.share.group import Partitions, ShareGroup, ShareMember
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.consumer.protocol import Write
    from abeyant.broker.groups.consumer.targets import Targets
    from abeyant.broker.groups.sessions import Sessions
    from abeyant.broker.groups.share.states import ShareStates

JOINS, LEAVES = 0, -1  # epochs in requests


class ShareHeartbeat(NamedTuple):
    """A ShareGroupHeartbeat. None means unchanged."""

    member_id: str
    epoch: int
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


class ShareHeartbeatResponse(NamedTuple):
    """The response to a ShareGroupHeartbeat."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    assignment: Assignment | None = None
    """The member's partitions; None if unchanged."""
    pending: bool = False
    """Whether states of partitions are being initialized: a later heartbeat will assign the partitions."""


OnHeartbeat = Callable[[ShareHeartbeatResponse], object]


class ShareProtocol:
    """The protocol for the share groups of one shard. Use from the loop's thread only."""

    def __init__(
        self,
        sessions: Sessions,
        targets: Targets,
        groups: Mapping[str, ShareGroup],
        states: ShareStates,
        write: Write,
        session_timeout: Callable[[str], float],
        may_assign: Callable[[ShareGroup], bool],
        now_ms: Callable[[], int],
        *,
        max_size: int,
    ) -> None:
        """`groups` are the shard's groups by id; `session_timeout` returns a group's session time-out in seconds.

        `may_assign` returns whether a group may get a new target assignment now; if not, a later heartbeat computes it.
        """
        self._sessions = sessions
        self._targets = targets
        self._groups = groups
        self._states = states
        self._write = write
        self._session_timeout = session_timeout
        self._may_assign = may_assign
        self._now_ms = now_ms
        self._max_size = max_size

    def heartbeat(self, group: ShareGroup, request: ShareHeartbeat, then: OnHeartbeat) -> None:
        """Handle a heartbeat: move the member to its target. Raises ApiError, and changes nothing then."""
        before = self._find_member(group, request)
        member = _update(before, request)
        entries: list[Entry] = []
        if member.id not in group.members or member != before:
            entries.append(records.member(group.id, member))
        members = {**group.members, member.id: member}
        topics = self._targets.find_topics((subscriber.topics, None) for subscriber in members.values())
        epoch = group.epoch
        resubscribed = member.topics != before.topics or member.id not in group.members
        waited = group.target_epoch >= group.epoch and self._assignable(group, topics) != _assigned(group)
        if resubscribed or topics != group.topics or waited:
            epoch += 1
            entries.append(records.group(group.id, epoch))
        target, target_epoch = group.target.get(member.id, NOTHING), group.target_epoch
        if epoch > target_epoch and self._may_assign(group):
            target_epoch = epoch
            target = self._compute(group, members, topics, epoch, entries)[member.id]
        after = member
        if target_epoch != member.epoch or resubscribed:
            ids = {topics[name][0] for name in member.topics if name in topics}
            after = member._replace(
                epoch=target_epoch,
                previous_epoch=member.epoch if target_epoch != member.epoch else member.previous_epoch,
                assigned=frozenset(partition for partition in target if partition[0] in ids),
            )
        if after != member or member.id not in group.members:
            entries.append(records.current(group.id, after))
        group_id = group.id
        new = self._without_state(group_id, topics)
        if new:
            entries.append(self._states.begin(group_id, new))
        is_full = request.epoch == JOINS or request.topics is not None
        response = ShareHeartbeatResponse(
            ErrorCode.none, None, member.id, after.epoch,
            after.assigned if is_full or after.assigned != before.assigned else None,
            pending=bool(self._states.of(group_id).initializing or new),
        )  # fmt: skip

        def written(error: ErrorCode) -> None:
            then(response if error is ErrorCode.none else ShareHeartbeatResponse(error))
            if new and error is ErrorCode.none:
                self._states.initialize(group_id, epoch, new)

        if entries:
            self._write(entries, written)
        else:
            then(response)
        self._settle(group_id, member.id, topics)

    def _find_member(self, group: ShareGroup, request: ShareHeartbeat) -> ShareMember:
        """Return the member, or create it. Raises ApiError."""
        member = group.members.get(request.member_id)
        if member is None and len(group.members) >= self._max_size:
            raise ApiError(
                ErrorCode.group_max_size_reached,
                f"The share group has reached its maximum capacity of {self._max_size} members.",
            )
        if request.epoch == JOINS:
            return ShareMember(request.member_id) if member is None else member
        member = group.require(request.member_id)
        if request.epoch > member.epoch:
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                f"The share group member has a greater member epoch ({request.epoch}) than the one known by the group"
                f" coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
            )
        if request.epoch not in (member.epoch, member.previous_epoch):
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                f"The share group member has a smaller member epoch ({request.epoch}) than the one known by the group"
                f" coordinator ({member.epoch}), and it does not match the previous member epoch"
                f" ({member.previous_epoch}). The member must abandon all its partitions and rejoin.",
            )
        return member

    def _compute(
        self,
        group: ShareGroup,
        members: Mapping[str, ShareMember],
        topics: Mapping[str, tuple[object, int]],
        epoch: int,
        entries: list[Entry],
    ) -> dict[str, Assignment]:
        """Return the target assignment for an epoch. Add the records of changes to `entries`."""
        initialized = self._states.of(group.id).initialized
        assignable = {topic: partitions for topic, (_, partitions) in initialized.items()}
        ids = {name: topic for topic, (name, _) in initialized.items() if name in topics}
        subscribed = {
            member.id: frozenset(ids[name] for name in member.topics if name in ids) for member in members.values()
        }
        target = assign(subscribed, assignable, group.target)
        for member_id, assignment in target.items():
            if group.target.get(member_id) != assignment:
                entries.append(records.target_of_member(group.id, member_id, assignment))
        entries.append(records.target(group.id, epoch, self._now_ms()))
        return target

    def _assignable(self, group: ShareGroup, topics: Mapping[str, tuple[object, int]]) -> Assignment:
        """Return the partitions that have a state and a subscriber; none for a group without members."""
        if not group.members:
            return NOTHING
        initialized = self._states.of(group.id).initialized
        return frozenset(
            (topic, index)
            for topic, (name, partitions) in initialized.items()
            if topics.get(name, (None,))[0] == topic
            for index in partitions
        )

    def _without_state(self, group_id: str, topics: Mapping[str, tuple[object, int]]) -> Partitions:
        """Return the partitions of these topics whose state is neither initialized nor being initialized."""
        controller_topics = self._targets.by_name()
        states = self._states.of(group_id)
        partitions = {}
        for name, (_, count) in topics.items():
            topic = controller_topics[name].id
            indexes = [part[topic][1] for part in (states.initialized, states.initializing) if topic in part]
            missing = frozenset(range(count)).difference(*indexes)
            if missing:
                partitions[topic] = (name, missing)
        return partitions

    # -- members that leave or expire

    def leave(self, group: ShareGroup, request: ShareHeartbeat, then: OnHeartbeat) -> None:
        """Remove a member. Raises ApiError."""
        member = group.require(request.member_id)
        response = ShareHeartbeatResponse(ErrorCode.none, None, member.id, request.epoch)
        self._remove(
            group,
            member.id,
            lambda error: then(response if error is ErrorCode.none else ShareHeartbeatResponse(error)),
        )

    def expire(self, group_id: str, member_id: str) -> None:
        """Remove a member whose session expired."""
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members:
            self._remove(group, member_id, ignore)

    def _remove(self, group: ShareGroup, member_id: str, then: Callable[[ErrorCode], object]) -> None:
        self._sessions.end(group.id, member_id)
        entries = [*records.member_tombstones(group.id, member_id), records.group(group.id, group.epoch + 1)]
        self._write(entries, then)

    # -- time

    def resume(self, group: ShareGroup) -> None:
        """Start the sessions of a group that was loaded from the log."""
        group.topics = self._targets.find_topics((member.topics, None) for member in group.members.values())
        for member in group.members.values():
            self._watch(group, member)

    def _settle(self, group_id: str, member_id: str, topics: dict[str, tuple[object, int]]) -> None:
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members:
            group.topics = topics
            self._watch(group, group.members[member_id])

    def _watch(self, group: ShareGroup, member: ShareMember) -> None:
        self._sessions.touch(group.id, member.id, member.client_id, self._session_timeout(group.id))


def _assigned(group: ShareGroup) -> Assignment:
    """Return the partitions in the target of any member."""
    return NOTHING.union(*group.target.values())


def _update(member: ShareMember, request: ShareHeartbeat) -> ShareMember:
    """Return the member with the fields that the heartbeat sets."""
    return member._replace(
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=member.topics if request.topics is None else tuple(sorted(set(request.topics))),
    )
