"""The classic protocol: joining, heartbeats and leaving. Each change starts a rebalance: see `rebalancing`.

A member joins, and rejoins when the response to a heartbeat says so. Heartbeats keep its session alive until the member
leaves, or stops sending them. A static member may restart and keeps its assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import JoinRequest, JoinResponse, Member, OnJoin, SyncResponse
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.classic.rebalancing import Rebalancing, Store
    from abeyant.broker.groups.sessions import Sessions
    from abeyant.broker.groups.waits import Waits

_NEW_MEMBER_JOIN = (
    300.0  # seconds; a member without an id cannot send heartbeats. Kafka: CONSUMER_GROUP_NEW_MEMBER_JOIN
)
_NONE = ErrorCode.none


class ClassicProtocol:
    """The classic protocol, for the groups of one shard. Use from the loop's thread only."""

    def __init__(
        self,
        waits: Waits,
        sessions: Sessions,
        store: Store,
        rebalances: Rebalancing,
        now_ms: Callable[[], int],
        *,
        max_size: int,
    ) -> None:
        """Allow at most `max_size` members per group."""
        self._waits = waits
        self._sessions = sessions
        self._store = store
        self.rebalances = rebalances
        self._now_ms = now_ms
        self._max_size = max_size

    # -- JoinGroup

    def join(self, group: ClassicGroup, request: JoinRequest, then: OnJoin) -> None:
        """Let a new or known member join. Call `then` once, or never if the member sends another JoinGroup before."""
        if not self._has_room(group, request.member_id):
            self._reject(group, request.member_id)
            then(JoinResponse(ErrorCode.group_max_size_reached, ""))
        elif group.state is State.DEAD:
            then(JoinResponse(ErrorCode.coordinator_not_available, request.member_id))
        elif not group.supports(request.protocol_type, [name for name, _ in request.protocols]):
            then(JoinResponse(ErrorCode.inconsistent_group_protocol, request.member_id))
        elif not request.member_id:
            self._join_new(group, request, then)
        elif request.member_id in group.pending:
            if request.instance_id is not None:  # a static member is never given an id first
                then(JoinResponse(ErrorCode.unknown_server_error, request.member_id))
                return
            self._sessions.end(group.id, request.member_id)
            self._add(group, request.member_id, request, then)
        else:
            self._rejoin(group, request, then)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the member fits into the group."""
        member = group.members.get(member_id)
        if group.state in (State.EMPTY, State.DEAD):
            return True
        if group.state is State.PREPARING:
            return (member is not None and member.joining is not None) or group.awaiting_join < self._max_size
        return member is not None or len(group.members) < self._max_size

    def _reject(self, group: ClassicGroup, member_id: str) -> None:
        if not self._drop_pending(group, member_id) and member_id in group.members:
            self._drop(group, group.members[member_id])

    def _join_new(self, group: ClassicGroup, request: JoinRequest, then: OnJoin) -> None:
        new_id = group.new_id(request.client_id, request.instance_id)
        if request.instance_id is not None and request.instance_id in group.static:
            self._replace_static(group, request.instance_id, new_id, request, then)
        elif request.instance_id is None and request.needs_id:
            group.pending[new_id] = None
            self._sessions.touch(group.id, new_id, request.client_id, request.session_timeout / 1000)
            then(JoinResponse(ErrorCode.member_id_required, new_id))
        else:
            self._add(group, new_id, request, then)

    def _rejoin(self, group: ClassicGroup, request: JoinRequest, then: OnJoin) -> None:
        try:
            member = group.require(request.member_id, request.instance_id)
        except ApiError as error:
            then(JoinResponse(error.code, request.member_id))
            return
        if group.state is State.EMPTY:
            then(JoinResponse(ErrorCode.unknown_member_id, request.member_id))
        elif (
            group.state is State.PREPARING
            or member.protocols != request.protocols
            # The leader rejoins to assign again, for instance when a topic got more partitions.
            or (group.state is State.STABLE and group.leader == member.id)
        ):
            self._update(group, member, request, then)
            self.rebalances.rebalance(group)
        else:  # the response was lost, or nothing has changed
            leads = group.state is State.COMPLETING and group.leader == member.id
            then(group.join_response(member, leads=leads))

    def _add(self, group: ClassicGroup, member_id: str, request: JoinRequest, then: OnJoin) -> None:
        member = Member(member_id, request)
        member.is_new = True
        member.joining = then
        if group.state is State.PREPARING and group.previous is State.EMPTY:
            group.new_member_added = True
        group.add(member)
        self._sessions.touch(group.id, member.id, member.client_id, _NEW_MEMBER_JOIN)
        self.rebalances.rebalance(group)

    def _update(self, group: ClassicGroup, member: Member, request: JoinRequest, then: OnJoin) -> None:
        member.rebalance_timeout = request.rebalance_timeout
        member.session_timeout = request.session_timeout
        group.update_protocols(member, request.protocols)
        group.await_join(member, then)

    def _replace_static(
        self,
        group: ClassicGroup,
        instance_id: str,
        new_id: str,
        request: JoinRequest,
        then: OnJoin,
    ) -> None:
        """Replace a restarted static member. Rebalance only if the group is not stable or its protocol changes."""
        old = group.members[group.static[instance_id]]
        old_id, old_leader = old.id, group.leader
        before = old.rebalance_timeout, old.session_timeout, old.protocols
        self._sessions.end(group.id, old.id)
        member = group.replace(instance_id, new_id)
        self.rebalances.watch(group, member)
        self._update(group, member, request, then)
        if group.state is not State.STABLE or group.protocol != group.choose_protocol():
            self.rebalances.rebalance(group)
            return

        def stored(error: ErrorCode) -> None:
            if member.joining is None:
                return  # a rebalance answered it already
            if error is not _NONE:
                group.answer_join(member, JoinResponse(error, ""))
                member.rebalance_timeout, member.session_timeout = before[:2]
                group.update_protocols(member, before[2])
                self._sessions.end(group.id, member.id)
                self.rebalances.watch(group, group.replace(instance_id, old_id))
                return
            leads = request.may_skip and group.leader == member.id
            response = group.join_response(member, leads=leads)._replace(skip_assignment=leads)
            if not request.may_skip:  # it gets the old leader's id, so that it does not compute assignments
                response = response._replace(leader=old_leader or "")
            group.answer_join(member, response)

        self._store(group, None, stored)

    # -- Heartbeat and expired sessions

    def heartbeat(self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> None:
        """Restart a member's session. Raises ApiError: REBALANCE_IN_PROGRESS if it has to rejoin."""
        member = group.require_current(member_id, instance_id, generation)
        if group.state is State.EMPTY:
            raise ApiError(ErrorCode.unknown_member_id)
        self.rebalances.watch(group, member)
        if group.state is State.PREPARING:
            raise ApiError(ErrorCode.rebalance_in_progress)

    def keep_alive(self, group: ClassicGroup, member_id: str) -> None:
        """Restart the session of a member that committed offsets, which counts as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None and group.state in (State.STABLE, State.PREPARING):
            self.rebalances.watch(group, member)

    def require_may_commit(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
    ) -> None:
        """Raise ApiError unless the client may commit offsets. Kafka: `validateOffsetCommit`.

        A non-member, for instance an admin client, may commit while the group is empty.
        """
        if group.state is State.DEAD:
            raise ApiError(ErrorCode.coordinator_not_available)
        if generation < 0 and group.state is State.EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            group.require_current(member_id, instance_id, generation)
        elif not transactional and group.state is not State.EMPTY:
            raise ApiError(ErrorCode.unknown_member_id)
        if not transactional and group.state is State.COMPLETING:
            raise ApiError(ErrorCode.rebalance_in_progress)

    def expire(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member whose session expired, unless it has a pending request other than its first JoinGroup."""
        if self._drop_pending(group, member_id):
            self._waits.check(group)
            return
        member = group.members.get(member_id)
        if member is not None and (member.is_new or (member.joining is None and member.syncing is None)):
            self.remove(group, member_id)

    # -- LeaveGroup

    def leave(
        self,
        group: ClassicGroup,
        identities: Sequence[tuple[str, str | None]],
        then: Callable[[list[ErrorCode]], object],
    ) -> None:
        """Remove members in one rebalance. Static members may be named by their instance ids."""
        errors = [self._leave(group, *identity) for identity in identities]
        if _NONE in errors:
            self._after_removal(group)
        then(errors)

    def _leave(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
        if not member_id:
            member_id = group.static.get(instance_id or "", "")
            if not member_id:
                return ErrorCode.unknown_member_id
        try:
            if not self._drop_pending(group, member_id):
                self._drop(group, group.require(member_id, instance_id))
        except ApiError as error:
            return error.code
        return _NONE

    def _after_removal(self, group: ClassicGroup) -> None:
        if group.state in (State.STABLE, State.COMPLETING):
            self.rebalances.prepare(group)
        else:
            self._waits.check(group)

    # -- the end

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member as if its session had expired."""
        self._drop(group, group.members[member_id])
        self._after_removal(group)

    def resume(self, group: ClassicGroup) -> None:
        """Start the sessions of a group that was loaded from the log or downgraded.

        A group without a leader also starts a rebalance.
        """
        for member in group.members.values():
            self.rebalances.watch(group, member)
        if group.members and group.leader is None:
            group.leader = next(iter(group.members))
            self.rebalances.rebalance(group)

    def end(self, group: ClassicGroup, error: ErrorCode = ErrorCode.not_coordinator) -> None:
        """Stop serving the group: it moved to another broker, or was removed. Answer pending requests with `error`."""
        self._sessions.end_group(group.id)
        for member in list(group.members.values()):
            group.answer_join(member, JoinResponse(error, member.id))
            member.answer_sync(SyncResponse(error))
        group.become(State.DEAD, self._now_ms())
        self._waits.forget(group)

    def _drop_pending(self, group: ClassicGroup, member_id: str) -> bool:
        """Remove a member that got an id and has not joined with it. Return whether there was such a member."""
        if member_id not in group.pending:
            return False
        del group.pending[member_id]
        self._sessions.end(group.id, member_id)
        return True

    def _drop(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member without a rebalance, and answer its pending requests with UNKNOWN_MEMBER_ID."""
        self._sessions.end(group.id, member.id)
        group.answer_join(member, JoinResponse(ErrorCode.unknown_member_id, ""))
        member.answer_sync(SyncResponse(ErrorCode.unknown_member_id))
        group.remove(member)
