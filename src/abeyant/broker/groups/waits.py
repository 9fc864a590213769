"""The operations in which groups wait: in the Rebalance and Heartbeat purgatories, on the broker's clock (K7, K8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant import Purgatory
from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.groups.classic.group import ClassicGroup
from abeyant.broker.groups.session import DelayedHeartbeat, Session

_ROUNDING = 1e-6  # seconds: times are floats, and their sums differ in the last digits

Then = Callable[[ClassicGroup], object]


class DelayedJoin(BrokerOperation):
    """The first half of a rebalance, until every member of the group has joined again (K5).

    In the Rebalance purgatory, keyed by the group: one operation for the JoinGroups of all members.
    """

    __slots__ = ("_complete", "_early", "_group")

    kind = "Rebalance"

    def __init__(
        self,
        group: ClassicGroup,
        timeout: float,
        client_id: str,
        since: float,
        complete: Callable[[ClassicGroup], object],
        *,
        early: bool = True,
    ) -> None:
        """Wait for at most `timeout` seconds; with `early=False` for all of them: a group's initial delay."""
        super().__init__(timeout, client_id, since)
        self._group = group
        self._complete = complete
        self._early = early

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the members that have not joined."""
        group = self._group
        missing = [member.id for member in group.members.values() if member.joining is None]
        return ((group.id, member) for member in missing + list(group.pending))

    def try_complete(self) -> bool:
        """Complete when all have joined. Kafka: `DelayedJoin.tryComplete`."""
        return self._early and self._group.all_joined and self.force_complete()

    def on_complete(self) -> None:
        """Answer the members that have joined, and remove the others."""
        self._complete(self._group)


class DelayedSync(BrokerOperation):
    """The second half of a rebalance, until every member has sent its SyncGroup.

    In the Rebalance purgatory, keyed by the group. The leader's assignment answers the members; this removes the late.
    """

    __slots__ = ("_generation", "_group", "_late")

    kind = "Rebalance"

    def __init__(
        self,
        group: ClassicGroup,
        timeout: float,
        client_id: str,
        since: float,
        late: Callable[[ClassicGroup], object],
    ) -> None:
        """Call `late` after `timeout` seconds."""
        super().__init__(timeout, client_id, since)
        self._group = group
        self._generation = group.generation
        self._late = late

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the members that have sent no SyncGroup."""
        return ((self._group.id, member) for member in sorted(self._group.unsynced))

    def try_complete(self) -> bool:
        """Complete when all have sent one, or another rebalance has begun. Kafka: `DelayedSync.tryComplete`."""
        group = self._group
        return (not group.unsynced or group.generation != self._generation) and self.force_complete()

    def on_expiration(self) -> None:
        """Remove the members that have not."""
        self._late(self._group)


class DelayedDeadline(BrokerOperation):
    """What a member has to do in a rebalance without a leader, until it has done it.

    A member of the new protocol gives back partitions; one of the classic protocol joins again, then asks for its
    assignment. In the Rebalance purgatory, keyed by group id and member id.
    """

    __slots__ = ("_is_due", "_late", "_member")

    kind = "Rebalance"

    def __init__(
        self,
        member: tuple[str, str],
        timeout: float,
        client_id: str,
        since: float,
        is_due: Callable[[], bool],
        late: Callable[[], object],
    ) -> None:
        """Call `late` after `timeout` seconds; `member` is the group id and the member id."""
        super().__init__(timeout, client_id, since)
        self._member = member
        self._is_due = is_due
        self._late = late

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the member."""
        return (self._member,)

    def try_complete(self) -> bool:
        """Complete when the member has done what it had to, or has left."""
        return not self._is_due() and self.force_complete()

    def on_expiration(self) -> None:
        """Remove the member."""
        self._late()


class Waits:
    """Submits and checks the operations of one shard's groups."""

    def __init__(
        self,
        rebalance: Purgatory[DelayedJoin | DelayedSync | DelayedDeadline],
        heartbeat: Purgatory[DelayedHeartbeat],
        now: Callable[[], float],
        expired: Callable[[str, str], object],
    ) -> None:
        """Take the clock, in seconds, and a callback `expired(group id, member id)` for sessions."""
        self._rebalance = rebalance
        self._heartbeat = heartbeat
        self._now = now
        self._expired = expired

    # -- rebalances

    def for_joins(self, group: ClassicGroup, seconds: float, then: Then) -> None:
        """Call `then(group)` once all members have joined, or after `seconds`."""
        self._submit(group, DelayedJoin(group, seconds, _client(group), self._now(), then))

    def for_delay(self, group: ClassicGroup, seconds: float, then: Then) -> None:
        """Call `then(group)` after `seconds`."""
        self._submit(group, DelayedJoin(group, seconds, _client(group), self._now(), then, early=False))

    def for_syncs(self, group: ClassicGroup, seconds: float, late: Then) -> None:
        """Call `late(group)` after `seconds`, unless all members have sent their SyncGroup by then."""
        self._submit(group, DelayedSync(group, seconds, _client(group), self._now(), late))

    def for_deadline(
        self,
        member: tuple[str, str],
        seconds: float,
        client_id: str,
        is_due: Callable[[], bool],
        late: Callable[[], object],
    ) -> None:
        """Call `late()` after `seconds`, unless `is_due` returns False by then."""
        operation = DelayedDeadline(member, seconds, client_id, self._now(), is_due, late)
        self._rebalance.try_complete_else_watch(operation, [member])

    def check_member(self, member: tuple[str, str]) -> None:
        """Check the operations that wait for a member."""
        self._rebalance.check_and_complete(member)

    def check(self, group: ClassicGroup) -> None:
        """Check the operations that wait for a group: a member has joined, synced or left."""
        self._rebalance.check_and_complete(group)

    def forget(self, group: ClassicGroup) -> None:
        """Cancel the operations that wait for a group."""
        self._rebalance.cancel_for_key(group)

    def _submit(self, group: ClassicGroup, operation: DelayedJoin | DelayedSync) -> None:
        self._rebalance.try_complete_else_watch(operation, [group])

    # -- sessions

    def watch(self, session: Session, seconds: float) -> None:
        """Restart a session of `seconds`: one store where it runs already."""
        deadline = self._now() + seconds
        running = session.operation
        session.seconds = seconds
        session.deadline = deadline
        if running is not None:
            if running.since + running.timeout <= deadline + _ROUNDING:
                return
            self._heartbeat.cancel(running)
        self._start(session, seconds)

    def unwatch(self, session: Session) -> None:
        """Stop a session."""
        running, session.operation = session.operation, None
        if running is not None:
            self._heartbeat.cancel(running)

    def _start(self, session: Session, seconds: float) -> None:
        session.operation = DelayedHeartbeat(session, seconds, self._now(), self._over)
        self._heartbeat.try_complete_else_watch(session.operation, [session])

    def _over(self, session: Session) -> None:
        if session.operation is None:
            return  # it left while its time was running out
        left = session.deadline - self._now()
        if left > _ROUNDING:
            self._start(session, left)
        else:
            session.operation = None
            self._expired(session.group_id, session.member_id)


def _client(group: ClassicGroup) -> str:
    """Return the leader's client id; empty without a leader."""
    leader = group.members.get(group.leader or "")
    return "" if leader is None else leader.client_id
