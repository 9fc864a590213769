"""The classic protocol's rebalance: how a group comes from one state to the next. Who is in it: see `membership`.

Kafka: `GroupMetadataManager`, of which every rule here is one. A rebalance has two halves: all members join, and are
told who they are (`DelayedJoin`); the leader says who has what, and all are told that (`DelayedSync`). In between and
afterwards each says from time to time that it is there (`DelayedHeartbeat`).

    JoinGroup, LeaveGroup, the end of a session
      -> prepare           the group rebalances: whoever is a member has to join again
      -> complete_join     all have, or the time is over: those that have not are out (K5)
    SyncGroup of the leader
      -> written to the log, and then told to all: the group is stable
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import Joined, Member, Synced
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.waits import Waits

_NONE = ErrorCode.none

Assignments = dict[str, bytes]


class Store(Protocol):
    """Where a group is written down."""

    def __call__(
        self, group: ClassicGroup, assignments: Assignments | None, then: Callable[[ErrorCode], object]
    ) -> None:
        """Write down the group with these assignments, None for those that its members have; then tell how it went."""


class Rebalancing:
    """For the groups of one shard. Use from the loop's thread only."""

    def __init__(self, waits: Waits, store: Store, now_ms: Callable[[], int], *, initial_delay: float) -> None:
        """`initial_delay` in seconds: how long the first members of a group wait for others."""
        self._waits = waits
        self._store = store
        self._now_ms = now_ms
        self._initial_delay = initial_delay

    # -- a rebalance's first half

    def rebalance(self, group: ClassicGroup) -> None:
        """Begin one, or see whether the one that has begun is over."""
        if group.can_rebalance:
            self.prepare(group)
        else:
            self._waits.check(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Begin one: whoever is a member has to join again."""
        if group.state is State.COMPLETING:
            self._tell_all(group, Synced(ErrorCode.rebalance_in_progress))
        group.unsynced.clear()
        first = group.state is State.EMPTY
        group.become(State.PREPARING, self._now_ms())
        self._waits.check(group)  # nobody waits for a SyncGroup any more
        if not first:
            self._waits.for_joins(group, group.rebalance_timeout / 1000, self.complete_join)
        else:
            left = max(group.rebalance_timeout / 1000 - self._initial_delay, 0.0)
            self._wait_for_others(group, self._initial_delay, left)

    def _wait_for_others(self, group: ClassicGroup, delay: float, left: float) -> None:
        """Have the first members of a group wait for others, and longer whenever one comes."""
        if delay <= 0:
            self.complete_join(group)
            return

        def over(_: ClassicGroup) -> None:
            if group.state is not State.PREPARING:
                return
            if group.new_member_added and left > 0:
                group.new_member_added = False
                self._wait_for_others(group, min(self._initial_delay, left), max(left - delay, 0.0))
            else:
                self.complete_join(group)

        self._waits.for_delay(group, delay, over)

    def complete_join(self, group: ClassicGroup) -> None:
        """All have joined, or the time is over: tell who is in. Kafka: `completeClassicGroupJoin`."""
        if group.state is not State.PREPARING:
            return
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._waits.unwatch(member.session)
                group.remove(member)
        if group.members and not group.elect_leader():
            # Static members only, and none has joined: they have until their sessions end.
            self._waits.for_joins(group, group.rebalance_timeout / 1000, self.complete_join)
            return
        group.next_generation(self._now_ms())
        if not group.members:
            self._store(group, {}, _nothing)
            return
        for member in list(group.members.values()):
            self.watch(member)
            member.is_new = False
            group.unsynced.add(member.id)
        generation = group.generation
        self._waits.for_syncs(group, group.rebalance_timeout / 1000, lambda late: self._sync_expired(late, generation))
        for member in list(group.members.values()):
            group.answer_join(member, self.joined(group, member, leads=group.leader == member.id))

    # -- its second half

    def sync(
        self,
        group: ClassicGroup,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocols: tuple[str | None, str | None],
        assignments: Assignments,
        then: Callable[[Synced], object],
    ) -> None:
        """A member wants to know what it has; the leader says it. `protocols`: type and name, where it tells them."""
        try:
            member = group.require_current(member_id, instance_id, generation)
            if any(
                given is not None and present is not None and given != present
                for given, present in zip(protocols, (group.protocol_type, group.protocol), strict=True)
            ):
                raise ApiError(ErrorCode.inconsistent_group_protocol)
            if group.state is State.EMPTY:
                raise ApiError(ErrorCode.unknown_member_id)
            if group.state is State.PREPARING:
                raise ApiError(ErrorCode.rebalance_in_progress)
        except ApiError as error:
            then(Synced(error.code))
            return
        group.unsynced.discard(member.id)
        if group.state is State.STABLE:
            self._waits.check(group)
            then(Synced(_NONE, group.protocol_type, group.protocol, member.assignment))
            return
        member.syncing = then
        if group.leader == member.id:
            self._assign(group, {known: assignments.get(known, b"") for known in group.members})
        self._waits.check(group)

    def _assign(self, group: ClassicGroup, assignments: Assignments) -> None:
        generation = group.generation

        def stored(error: ErrorCode) -> None:
            if group.state is not State.COMPLETING or group.generation != generation:
                return  # another rebalance has begun meanwhile
            if error is not _NONE:
                for member in group.members.values():
                    member.assignment = b""
                self._tell_all(group, Synced(error))
                self.rebalance(group)
                return
            group.become(State.STABLE, self._now_ms())
            for member in group.members.values():
                member.assignment = assignments.get(member.id, b"")
            self._tell_all(group, Synced(_NONE, group.protocol_type, group.protocol))

        self._store(group, assignments, stored)

    def _tell_all(self, group: ClassicGroup, answer: Synced) -> None:
        """Answer all that wait for what they have."""
        for member in list(group.members.values()):
            assignment = member.assignment if answer.error is _NONE else b""
            if member.synced(answer._replace(assignment=assignment)):
                self.watch(member)

    def _sync_expired(self, group: ClassicGroup, generation: int) -> None:
        """The time for SyncGroups is over: who has sent none is out."""
        if group.generation != generation or group.state not in (State.COMPLETING, State.STABLE):
            return
        late = [group.members[member_id] for member_id in group.unsynced if member_id in group.members]
        for member in late:
            self._waits.unwatch(member.session)
            group.remove(member)
        if late:
            self.prepare(group)

    def joined(self, group: ClassicGroup, member: Member, *, leads: bool) -> Joined:
        """The answer to a JoinGroup of a member that is in."""
        return Joined(
            _NONE, member.id, group.generation, group.protocol_type, group.protocol, group.leader or "",
            group.roster() if leads else (),
        )  # fmt: skip

    def watch(self, member: Member) -> None:
        """It is alive: its session lasts from now on."""
        self._waits.watch(member.session, member.session_timeout / 1000)


def _nothing(_: ErrorCode) -> None:
    """It could not be written down that a group is empty: the next coordinator will find out by itself."""
