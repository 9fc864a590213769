"""The rebalance of the classic protocol: how a group moves from one state to the next. Membership is in `protocol`.

Every rule is one of Kafka's `GroupMetadataManager`. A rebalance has two halves: all members join and get their ids; the
leader sends the assignments and all members get theirs. In between and afterwards each sends heartbeats.

    JoinGroup, LeaveGroup, the end of a session
      -> prepare           the group rebalances: every member has to join again
      -> complete_join     all have, or the time-out is over: the others are removed (K5)
    SyncGroup of the leader
      -> written to the log, then sent to all: the group is stable
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from abeyant.broker.coordinator.shard import ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import Member, OnSync, SyncResponse
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.waits import Waits

_NONE = ErrorCode.none

Assignments = dict[str, bytes]


Store = Callable[[ClassicGroup, Assignments | None, Callable[[ErrorCode], object]], None]
"""Writes a group to the log with these assignments, None for its members' own; calls back with the result."""


class Rebalancing:
    """Rebalances the groups of one shard. Use from the loop's thread only."""

    def __init__(self, waits: Waits, store: Store, now_ms: Callable[[], int], *, initial_delay: float) -> None:
        """Let the first members of a group wait `initial_delay` seconds for others."""
        self._waits = waits
        self._store = store
        self._now_ms = now_ms
        self._initial_delay = initial_delay

    # -- a rebalance's first half

    def rebalance(self, group: ClassicGroup) -> None:
        """Begin a rebalance, or check whether the one in progress is complete."""
        if group.can_rebalance:
            self.prepare(group)
        else:
            self._waits.check(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Begin a rebalance: every member has to join again."""
        if group.state is State.COMPLETING:
            self._answer_syncs(group, SyncResponse(ErrorCode.rebalance_in_progress))
        group.unsynced.clear()
        first = group.state is State.EMPTY
        group.become(State.PREPARING, self._now_ms())
        self._waits.check(group)  # no SyncGroup is waited for any more
        if not first:
            self._wait_for_all(group)
        else:
            left = max(group.rebalance_timeout / 1000 - self._initial_delay, 0.0)
            self._wait_for_others(group, self._initial_delay, left)

    def _wait_for_others(self, group: ClassicGroup, delay: float, left: float) -> None:
        """Delay the first rebalance of a group, and extend the delay whenever another member joins."""
        if delay <= 0:
            self.complete_join(group)
            return

        def over() -> None:
            if group.state is not State.PREPARING:
                return
            if group.new_member_added and left > 0:
                group.new_member_added = False
                self._wait_for_others(group, min(self._initial_delay, left), max(left - delay, 0.0))
            else:
                self.complete_join(group)

        self._waits.submit(group, delay, group.client_id, group.not_joined, lambda: False, then=over)

    def _wait_for_all(self, group: ClassicGroup) -> None:
        self._waits.submit(
            group, group.rebalance_timeout / 1000, group.client_id, group.not_joined, lambda: group.all_joined,
            then=lambda: self.complete_join(group),
        )  # fmt: skip

    def complete_join(self, group: ClassicGroup) -> None:
        """Complete the first half: all have joined, or the time-out is over. Kafka: `completeClassicGroupJoin`."""
        if group.state is not State.PREPARING:
            return
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._waits.unwatch(member.session)
                group.remove(member)
        if group.members and not group.elect_leader():
            # Static members only, and none has joined: they have until their sessions end.
            self._wait_for_all(group)
            return
        group.next_generation(self._now_ms())
        if not group.members:
            self._store(group, {}, ignore)
            return
        for member in list(group.members.values()):
            self.watch(member)
            member.is_new = False
            group.unsynced.add(member.id)
        generation = group.generation
        self._waits.submit(
            group, group.rebalance_timeout / 1000, group.client_id,
            lambda: [(group.id, member_id) for member_id in sorted(group.unsynced)],
            lambda: not group.unsynced or group.generation != generation,
            late=lambda: self._sync_expired(group, generation),
        )  # fmt: skip
        for member in list(group.members.values()):
            group.answer_join(member, group.join_response(member, leads=group.leader == member.id))

    # -- its second half

    def sync(
        self,
        group: ClassicGroup,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocols: tuple[str | None, str | None],
        assignments: Assignments,
        then: OnSync,
    ) -> None:
        """Handle a SyncGroup; the leader's has the assignments. `protocols` are type and name, where it has them."""
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
            then(SyncResponse(error.code))
            return
        group.unsynced.discard(member.id)
        if group.state is State.STABLE:
            self._waits.check(group)
            then(SyncResponse(_NONE, group.protocol_type, group.protocol, member.assignment))
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
                self._answer_syncs(group, SyncResponse(error))
                self.rebalance(group)
                return
            group.become(State.STABLE, self._now_ms())
            for member in group.members.values():
                member.assignment = assignments.get(member.id, b"")
            self._answer_syncs(group, SyncResponse(_NONE, group.protocol_type, group.protocol))

        self._store(group, assignments, stored)

    def _answer_syncs(self, group: ClassicGroup, answer: SyncResponse) -> None:
        """Answer all SyncGroups that wait."""
        for member in list(group.members.values()):
            assignment = member.assignment if answer.error is _NONE else b""
            if member.answer_sync(answer._replace(assignment=assignment)):
                self.watch(member)

    def _sync_expired(self, group: ClassicGroup, generation: int) -> None:
        """Remove the members that have sent no SyncGroup in time."""
        if group.generation != generation or group.state not in (State.COMPLETING, State.STABLE):
            return
        late = [group.members[member_id] for member_id in group.unsynced if member_id in group.members]
        for member in late:
            self._waits.unwatch(member.session)
            group.remove(member)
        if late:
            self.prepare(group)

    def watch(self, member: Member) -> None:
        """Restart a member's session."""
        self._waits.watch(member.session, member.session_timeout / 1000)
