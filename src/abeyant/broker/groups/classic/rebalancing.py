"""The rebalance of the classic protocol, which moves a group from state to state. Membership is in `protocol`.

Follows Kafka's `GroupMetadataManager`. A rebalance has two phases: all members join and get their ids; then the leader
sends the assignments and each member gets its own. Members send heartbeats throughout.

    JoinGroup, LeaveGroup, an expired session
      -> prepare           every member has to rejoin
      -> complete_join     all have rejoined, or timed out and been removed (K5)
    SyncGroup of the leader
      -> the assignments are written to the log, then sent to all: the group is stable
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
    from abeyant.broker.groups.sessions import Sessions
    from abeyant.broker.groups.waits import Waits

_NONE = ErrorCode.none

Assignments = dict[str, bytes]


Store = Callable[[ClassicGroup, Assignments | None, Callable[[ErrorCode], object]], None]
"""Writes a group to the log with these assignments (None: the members' current ones), then calls back."""


class Rebalancing:
    """The rebalances of one shard's groups. Use from the loop's thread only."""

    def __init__(
        self, waits: Waits, sessions: Sessions, store: Store, now_ms: Callable[[], int], *, initial_delay: float
    ) -> None:
        """Delay the first rebalance of a group by `initial_delay` seconds, for more members to join."""
        self._waits = waits
        self._sessions = sessions
        self._store = store
        self._now_ms = now_ms
        self._initial_delay = initial_delay

    # -- first phase: members join

    def rebalance(self, group: ClassicGroup) -> None:
        """Start a rebalance, or check whether the one in progress is complete."""
        if group.can_rebalance:
            self.prepare(group)
        else:
            self._waits.check(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Start a rebalance, for which every member has to rejoin."""
        if group.state is State.COMPLETING:
            self._answer_syncs(group, SyncResponse(ErrorCode.rebalance_in_progress))
        group.unsynced.clear()
        first = group.state is State.EMPTY
        group.become(State.PREPARING, self._now_ms())
        self._waits.check(group)  # completes the wait for SyncGroups
        if not first:
            self._wait_for_all(group)
        else:
            remaining = max(group.rebalance_timeout / 1000 - self._initial_delay, 0.0)
            self._wait_for_others(group, self._initial_delay, remaining)

    def _wait_for_others(self, group: ClassicGroup, delay: float, remaining: float) -> None:
        """Delay a group's first rebalance; extend the delay while members join, by `remaining` seconds at most."""
        if delay <= 0:
            self.complete_join(group)
            return

        def end_of_delay() -> None:
            if group.state is not State.PREPARING:
                return
            if group.new_member_added and remaining > 0:
                group.new_member_added = False
                self._wait_for_others(group, min(self._initial_delay, remaining), max(remaining - delay, 0.0))
            else:
                self.complete_join(group)

        self._waits.submit(group, delay, group.client_id, group.not_joined, lambda: False, then=end_of_delay)

    def _wait_for_all(self, group: ClassicGroup) -> None:
        self._waits.submit(
            group, group.rebalance_timeout / 1000, group.client_id, group.not_joined, lambda: group.all_joined,
            then=lambda: self.complete_join(group),
        )  # fmt: skip

    def complete_join(self, group: ClassicGroup) -> None:
        """End the first phase: remove dynamic members that did not rejoin. Kafka: `completeClassicGroupJoin`."""
        if group.state is not State.PREPARING:
            return
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._sessions.end(group.id, member.id)
                group.remove(member)
        if group.members and not group.elect_leader():
            # Static members only, and none has rejoined: wait until their sessions expire.
            self._wait_for_all(group)
            return
        group.next_generation(self._now_ms())
        if not group.members:
            self._store(group, {}, ignore)
            return
        for member in list(group.members.values()):
            self.watch(group, member)
            member.is_new = False
            group.unsynced.add(member.id)
        generation = group.generation
        self._waits.submit(
            group, group.rebalance_timeout / 1000, group.client_id,
            lambda: [(group.id, member_id) for member_id in sorted(group.unsynced)],
            lambda: not group.unsynced or group.generation != generation,
            on_timeout=lambda: self._remove_unsynced(group, generation),
        )  # fmt: skip
        for member in list(group.members.values()):
            group.answer_join(member, group.join_response(member, leads=group.leader == member.id))

    # -- second phase: the leader assigns

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
        """Handle a SyncGroup. Only the leader sends `assignments`. `protocols` are the protocol's type and name."""
        try:
            member = group.require_current(member_id, instance_id, generation)
            if any(
                received is not None and current is not None and received != current
                for received, current in zip(protocols, (group.protocol_type, group.protocol), strict=True)
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
            self._assign(group, {key: assignments.get(key, b"") for key in group.members})
        self._waits.check(group)

    def _assign(self, group: ClassicGroup, assignments: Assignments) -> None:
        generation = group.generation

        def stored(error: ErrorCode) -> None:
            if group.state is not State.COMPLETING or group.generation != generation:
                return  # another rebalance has started meanwhile
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
        """Answer all pending SyncGroups."""
        for member in list(group.members.values()):
            assignment = member.assignment if answer.error is _NONE else b""
            if member.answer_sync(answer._replace(assignment=assignment)):
                self.watch(group, member)

    def _remove_unsynced(self, group: ClassicGroup, generation: int) -> None:
        """Remove the members that sent no SyncGroup in time."""
        if group.generation != generation or group.state not in (State.COMPLETING, State.STABLE):
            return
        late = [group.members[member_id] for member_id in group.unsynced if member_id in group.members]
        for member in late:
            self._sessions.end(group.id, member.id)
            group.remove(member)
        if late:
            self.prepare(group)

    def watch(self, group: ClassicGroup, member: Member) -> None:
        """Restart a member's session."""
        self._sessions.touch(group.id, member.id, member.client_id, member.session_timeout / 1000)
