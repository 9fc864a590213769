"""The classic protocol: how a group comes from one state to the next. It knows members, time-outs and a log.

Kafka: `GroupMetadataManager`, of which every rule here is one. A rebalance has two halves: all members join, and are
told who they are (`DelayedJoin`); the leader says who has what, and all are told that (`DelayedSync`). In between and
afterwards each says from time to time that it is there (`DelayedHeartbeat`).

    JoinGroup, LeaveGroup, the end of a session
      -> _prepare          the group rebalances: whoever is a member has to join again
      -> complete_join     all have, or the time is over: those that have not are out (K5)
    SyncGroup of the leader
      -> written to the log, and then told to all: the group is stable
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from abeyance.broker.errors import ApiError
from abeyance.broker.groups.classic import ClassicGroup, State
from abeyance.broker.groups.member import Joined, Joining, Member, Session, Synced
from abeyance.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyance.broker.groups.waits import Waits

_NEW_MEMBER_JOIN = 300.0  # seconds: who has no id yet cannot send heartbeats; Kafka's CONSUMER_GROUP_NEW_MEMBER_JOIN
_NONE = ErrorCode.none

Assignments = dict[str, bytes]


class Store(Protocol):
    """Where a group is written down."""

    def __call__(
        self, group: ClassicGroup, assignments: Assignments | None, then: Callable[[ErrorCode], object]
    ) -> None:
        """Write down the group with these assignments, None for those that its members have; then tell how it went."""


class Rebalancing:
    """The protocol, for the groups of one shard. Use from the loop's thread only."""

    def __init__(
        self, waits: Waits, store: Store, now_ms: Callable[[], int], *, initial_delay: float, max_size: int
    ) -> None:
        """`initial_delay` in seconds: how long the first members of a group wait for others."""
        self._waits = waits
        self._store = store
        self._now_ms = now_ms
        self._initial_delay = initial_delay
        self._max_size = max_size

    # -- JoinGroup

    def join(self, group: ClassicGroup, asked: Joining, then: Callable[[Joined], object]) -> None:
        """A member joins, or joins again. `then` is called once, unless it asks again by another connection."""
        if not self._accepts(group, asked.member_id):
            self._turn_away(group, asked.member_id)
            then(Joined(ErrorCode.group_max_size_reached, ""))
        elif group.state is State.DEAD:
            then(Joined(ErrorCode.coordinator_not_available, asked.member_id))
        elif not group.supports(asked.protocol_type, [name for name, _ in asked.protocols]):
            then(Joined(ErrorCode.inconsistent_group_protocol, asked.member_id))
        elif not asked.member_id:
            self._join_new(group, asked, then)
        elif asked.member_id in group.pending:
            if asked.instance_id is not None:  # a static member is never given an id first
                then(Joined(ErrorCode.unknown_server_error, asked.member_id))
                return
            self._waits.unwatch(group.pending[asked.member_id])
            self._add(group, asked.member_id, asked, then)
        else:
            self._join_again(group, asked, then)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether there is room."""
        member = group.members.get(member_id)
        if group.state in (State.EMPTY, State.DEAD):
            return True
        if group.state is State.PREPARING:
            return (member is not None and member.joining is not None) or group.awaiting_join < self._max_size
        return member is not None or len(group.members) < self._max_size

    def _turn_away(self, group: ClassicGroup, member_id: str) -> None:
        session = group.pending.pop(member_id, None)
        if session is not None:
            self._waits.unwatch(session)
        elif member_id in group.members:
            self._drop(group, group.members[member_id])

    def _join_new(self, group: ClassicGroup, asked: Joining, then: Callable[[Joined], object]) -> None:
        new_id = group.new_id(asked.client_id, asked.instance_id)
        if asked.instance_id is not None:
            if asked.instance_id in group.static:
                self._join_in_place(group, asked.instance_id, new_id, asked, then)
            else:
                self._add(group, new_id, asked, then)
        elif asked.needs_id:
            session = group.pending[new_id] = Session(group.id, new_id, asked.client_id)
            self._waits.watch(session, asked.session_timeout / 1000)
            then(Joined(ErrorCode.member_id_required, new_id))
        else:
            self._add(group, new_id, asked, then)

    def _join_again(self, group: ClassicGroup, asked: Joining, then: Callable[[Joined], object]) -> None:
        try:
            member = group.require(asked.member_id, asked.instance_id)
        except ApiError as error:
            then(Joined(error.code, asked.member_id))
            return
        if group.state is State.EMPTY:
            then(Joined(ErrorCode.unknown_member_id, asked.member_id))
        elif (
            group.state is State.PREPARING
            or member.protocols != asked.protocols
            # The leader joins again when what is to be assigned has changed, a topic's partitions for instance.
            or (group.state is State.STABLE and group.leader == member.id)
        ):
            self._update(group, member, asked, then)
            self.rebalance(group)
        else:  # it has lost the answer, or has nothing new to tell
            leads = group.state is State.COMPLETING and group.leader == member.id
            then(self._joined(group, member, leads=leads))

    def _add(self, group: ClassicGroup, member_id: str, asked: Joining, then: Callable[[Joined], object]) -> None:
        member = Member(group.id, member_id, asked)
        member.is_new = True
        member.joining = then
        if group.state is State.PREPARING and group.previous is State.EMPTY:
            group.new_member_added = True
        group.add(member)
        self._waits.watch(member.session, _NEW_MEMBER_JOIN)
        self.rebalance(group)

    def _update(self, group: ClassicGroup, member: Member, asked: Joining, then: Callable[[Joined], object]) -> None:
        member.rebalance_timeout = asked.rebalance_timeout
        member.session_timeout = asked.session_timeout
        group.told_again(member, asked.protocols)
        group.await_join(member, then)

    def _join_in_place(
        self, group: ClassicGroup, instance_id: str, new_id: str, asked: Joining, then: Callable[[Joined], object]
    ) -> None:
        """A static member's process has started anew: while nothing else changes, it goes on with what it had."""
        old = group.members[group.static[instance_id]]
        old_id, old_leader = old.id, group.leader
        before = old.rebalance_timeout, old.session_timeout, old.protocols
        self._waits.unwatch(old.session)
        member = group.replace(instance_id, new_id)
        self._watch(member)
        self._update(group, member, asked, then)
        if group.state is not State.STABLE:
            self.rebalance(group)
            return
        if group.protocol != group.choose_protocol():
            self.rebalance(group)
            return

        def stored(error: ErrorCode) -> None:
            if member.joining is None:
                return  # a rebalance has answered it
            if error is not _NONE:
                group.answer_join(member, Joined(error, ""))
                member.rebalance_timeout, member.session_timeout = before[:2]
                group.told_again(member, before[2])
                self._waits.unwatch(member.session)
                self._watch(group.replace(instance_id, old_id))
            elif asked.may_skip:
                leads = group.leader == member.id
                group.answer_join(member, self._joined(group, member, leads=leads)._replace(skip_assignment=leads))
            else:  # it is told of the old leader, so that it does not assign
                group.answer_join(member, self._joined(group, member, leads=False)._replace(leader=old_leader or ""))

        self._store(group, None, stored)

    def _joined(self, group: ClassicGroup, member: Member, *, leads: bool) -> Joined:
        return Joined(
            _NONE, member.id, group.generation, group.protocol_type, group.protocol, group.leader or "",
            group.roster() if leads else (),
        )  # fmt: skip

    # -- a rebalance's first half

    def rebalance(self, group: ClassicGroup) -> None:
        """Begin one, or see whether the one that has begun is over."""
        if group.can_rebalance:
            self._prepare(group)
        else:
            self._waits.check(group)

    def _prepare(self, group: ClassicGroup) -> None:
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
            self._watch(member)
            member.is_new = False
            group.unsynced.add(member.id)
        generation = group.generation
        self._waits.for_syncs(group, group.rebalance_timeout / 1000, lambda late: self._sync_expired(late, generation))
        for member in list(group.members.values()):
            group.answer_join(member, self._joined(group, member, leads=group.leader == member.id))

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
            member = self._require(group, member_id, instance_id, generation)
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
                self._watch(member)

    def _sync_expired(self, group: ClassicGroup, generation: int) -> None:
        """The time for SyncGroups is over: who has sent none is out."""
        if group.generation != generation or group.state not in (State.COMPLETING, State.STABLE):
            return
        late = [group.members[member_id] for member_id in group.unsynced if member_id in group.members]
        for member in late:
            self._waits.unwatch(member.session)
            group.remove(member)
        if late:
            self._prepare(group)

    # -- Heartbeat, and its absence

    def heartbeat(self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> None:
        """A member is alive. Raises ApiError, REBALANCE_IN_PROGRESS when it is to join again."""
        member = self._require(group, member_id, instance_id, generation)
        if group.state is State.EMPTY:
            raise ApiError(ErrorCode.unknown_member_id)
        self._watch(member)
        if group.state is State.PREPARING:
            raise ApiError(ErrorCode.rebalance_in_progress)

    def alive(self, group: ClassicGroup, member_id: str) -> None:
        """A member has committed offsets, which is as good as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None and group.state in (State.STABLE, State.PREPARING):
            self._watch(member)

    def require_may_commit(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
    ) -> None:
        """Whether a group's offsets are a client's to commit. Raises ApiError. Kafka: `validateOffsetCommit`.

        Who is no member, an admin client for instance, may while there are none.
        """
        if group.state is State.DEAD:
            raise ApiError(ErrorCode.coordinator_not_available)
        if generation < 0 and group.state is State.EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self._require(group, member_id, instance_id, generation)
        elif not transactional and group.state is not State.EMPTY:
            raise ApiError(ErrorCode.unknown_member_id)
        if not transactional and group.state is State.COMPLETING:
            raise ApiError(ErrorCode.rebalance_in_progress)

    def expired(self, group: ClassicGroup, member_id: str) -> None:
        """A session is over. Who waits for an answer of ours is not silent, but one that has never been answered is."""
        if group.pending.pop(member_id, None) is not None:
            self._waits.check(group)
            return
        member = group.members.get(member_id)
        if member is not None and (member.is_new or (member.joining is None and member.syncing is None)):
            self._remove(group, member)

    # -- LeaveGroup

    def leave(
        self,
        group: ClassicGroup,
        identities: Sequence[tuple[str, str | None]],
        then: Callable[[list[ErrorCode]], object],
    ) -> None:
        """Members leave all at once, static ones maybe by their instance ids; the others share what they had."""
        errors = [self._leave(group, *identity) for identity in identities]
        if _NONE in errors:
            self._left(group)
        then(errors)

    def _leave(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
        if not member_id:
            member_id = group.static.get(instance_id or "", "")
            if not member_id:
                return ErrorCode.unknown_member_id
        session = group.pending.pop(member_id, None)
        if session is not None:
            self._waits.unwatch(session)
            return _NONE
        try:
            self._drop(group, group.require(member_id, instance_id))
        except ApiError as error:
            return error.code
        return _NONE

    def _left(self, group: ClassicGroup) -> None:
        if group.state in (State.STABLE, State.COMPLETING):
            self._prepare(group)
        else:
            self._waits.check(group)

    # -- the end

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Put a member out, as if its session were over."""
        self._remove(group, group.members[member_id])

    def resume(self, group: ClassicGroup) -> None:
        """A group has been read from the log: its members' sessions begin."""
        for member in group.members.values():
            self._watch(member)

    def end(self, group: ClassicGroup, error: ErrorCode = ErrorCode.not_coordinator) -> None:
        """This broker does not coordinate it any more, or not as a classic group: who waits is told the error."""
        for session in [member.session for member in group.members.values()] + list(group.pending.values()):
            self._waits.unwatch(session)
        for member in list(group.members.values()):
            group.answer_join(member, Joined(error, member.id))
            member.synced(Synced(error))
        group.become(State.DEAD, self._now_ms())
        self._waits.forget(group)

    # -- inside

    def _require(self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
        if group.state is State.DEAD:
            raise ApiError(ErrorCode.coordinator_not_available)
        member = group.require(member_id, instance_id)
        if generation != group.generation:
            raise ApiError(ErrorCode.illegal_generation)
        return member

    def _watch(self, member: Member) -> None:
        self._waits.watch(member.session, member.session_timeout / 1000)

    def _remove(self, group: ClassicGroup, member: Member) -> None:
        self._drop(group, member)
        self._left(group)

    def _drop(self, group: ClassicGroup, member: Member) -> None:
        """Without a rebalance. One that waits for an answer gets one, so that it can begin anew."""
        self._waits.unwatch(member.session)
        group.answer_join(member, Joined(ErrorCode.unknown_member_id, ""))
        member.synced(Synced(ErrorCode.unknown_member_id))
        group.remove(member)


def _nothing(_: ErrorCode) -> None:
    """It could not be written down that a group is empty: the next coordinator will find out by itself."""
