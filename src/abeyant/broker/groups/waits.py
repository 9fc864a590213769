"""The delayed operations of groups: the steps of a rebalance, and the sessions of members.

A heartbeat does not touch the pending operation: it only moves the session's `deadline`. When the operation expires
and there was a heartbeat meanwhile, a new operation waits for the remaining time. So each member costs one assignment
per heartbeat, and one operation per session time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from abeyant import Purgatory
from abeyant.broker.delayed.operation import BrokerOperation, Waiting

_ROUNDING = 1e-6  # seconds: sums of float times differ in the last digits


class DelayedRebalance(BrokerOperation):
    """A step of a rebalance, in the Rebalance purgatory. Kafka: `DelayedJoin`, `DelayedSync`, `DelayedRebalance`."""

    __slots__ = ("_is_done", "_members", "_on_timeout", "_then")

    kind = "Rebalance"

    def __init__(
        self,
        timeout: float,
        client_id: str,
        since: float,
        members: Callable[[], Iterable[tuple[str, str]]],
        is_done: Callable[[], bool],
        then: Callable[[], object] | None,
        on_timeout: Callable[[], object] | None,
    ) -> None:
        """Call `then` when `is_done`, or after `timeout` seconds; after a time-out also call `on_timeout`."""
        super().__init__(timeout, client_id, since)
        self._members = members
        self._is_done = is_done
        self._then = then
        self._on_timeout = on_timeout

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the group id and member id of each member that it waits for."""
        return self._members()

    def try_complete(self) -> bool:
        """Complete when the step is done."""
        return self._is_done() and self.force_complete()

    def on_complete(self) -> None:
        """Continue the rebalance."""
        if self._then is not None:
            self._then()

    def on_expiration(self) -> None:
        """Remove the members that did not answer in time."""
        if self._on_timeout is not None:
            self._on_timeout()


class Session:
    """A member's session timeout. For a new member, the timeout to join with the id it was given."""

    __slots__ = ("client_id", "deadline", "group_id", "member_id", "operation", "seconds")

    def __init__(self, group_id: str, member_id: str, client_id: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.client_id = client_id
        self.seconds = 0.0
        self.deadline = 0.0  # seconds on the cluster's clock
        self.operation: DelayedHeartbeat | None = None  # None while the session is stopped


class DelayedHeartbeat(BrokerOperation):
    """A running session, in the Heartbeat purgatory, keyed by the session. It expires or is cancelled."""

    __slots__ = ("_on_timeout", "_session")

    kind = "Heartbeat"

    def __init__(self, session: Session, timeout: float, since: float, on_timeout: Callable[[Session], object]) -> None:
        """Call `on_timeout` after `timeout` seconds, the time left until the deadline."""
        super().__init__(timeout, session.client_id, since)
        self._session = session
        self._on_timeout = on_timeout

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the group id and member id."""
        return ((self._session.group_id, self._session.member_id),)

    def describe(self, broker: int) -> Waiting:
        """Return its row in `Cluster.waiting`, with the deadline that the last heartbeat set."""
        session = self._session
        since = session.deadline - session.seconds
        return Waiting(broker, self.kind, tuple(self.keys()), self.client_id, since, session.deadline)

    def try_complete(self) -> bool:
        """Return False, as a heartbeat does not complete it."""
        return False

    def on_expiration(self) -> None:
        """Expire the session, or wait for its new deadline."""
        self._on_timeout(self._session)


class Waits:
    """Submits and checks the delayed operations of one shard's groups."""

    def __init__(
        self,
        rebalance: Purgatory[DelayedRebalance],
        heartbeat: Purgatory[DelayedHeartbeat],
        now: Callable[[], float],
        expired: Callable[[str, str], object],
    ) -> None:
        """`now` returns seconds; `expired(group id, member id)` is called when a session expires."""
        self._rebalance = rebalance
        self._heartbeat = heartbeat
        self._now = now
        self._expired = expired

    def submit(
        self,
        key: Hashable,
        seconds: float,
        client_id: str,
        members: Callable[[], Iterable[tuple[str, str]]],
        is_done: Callable[[], bool],
        then: Callable[[], object] | None = None,
        on_timeout: Callable[[], object] | None = None,
    ) -> None:
        """Call `then` when a `check` of `key` finds `is_done`, or after `seconds`; then also call `on_timeout`."""
        operation = DelayedRebalance(seconds, client_id, self._now(), members, is_done, then, on_timeout)
        self._rebalance.try_complete_else_watch(operation, [key])

    def check(self, key: Hashable) -> None:
        """Check the operations of a group or a member."""
        self._rebalance.check_and_complete(key)

    def forget(self, key: Hashable) -> None:
        """Cancel the operations of a group."""
        self._rebalance.cancel_for_key(key)

    def watch(self, session: Session, seconds: float) -> None:
        """Restart a session of `seconds`. While it runs, this only moves its deadline."""
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

    def expire_due(self, sessions: Iterable[Session]) -> None:
        """Expire those of the sessions whose deadline has passed. The timer does so up to some ms later."""
        now = self._now()
        for session in sessions:
            if session.operation is not None and session.deadline <= now + _ROUNDING:
                self.unwatch(session)
                self._expired(session.group_id, session.member_id)

    def _start(self, session: Session, seconds: float) -> None:
        session.operation = DelayedHeartbeat(session, seconds, self._now(), self._check_deadline)
        self._heartbeat.try_complete_else_watch(session.operation, [session])

    def _check_deadline(self, session: Session) -> None:
        if session.operation is None:
            return  # the member has just left
        left = session.deadline - self._now()
        if left > _ROUNDING:
            self._start(session, left)
        else:
            session.operation = None
            self._expired(session.group_id, session.member_id)
