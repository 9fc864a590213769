"""What groups wait for: the steps of a rebalance, and the sessions of their members.

A heartbeat does not touch the operation that waits: it moves the session's `deadline`, which is one store. When the
operation expires, it is checked whether there was a heartbeat, and then a new one waits for what is left. So 100,000
members cost a store a heartbeat, and an operation each per session time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from abeyant import Purgatory
from abeyant.broker.delayed.operation import BrokerOperation, Waiting

_ROUNDING = 1e-6  # seconds: times are floats, and their sums differ in the last digits


class DelayedRebalance(BrokerOperation):
    """A step of a rebalance, in the Rebalance purgatory. Kafka: `DelayedJoin`, `DelayedSync`, `DelayedRebalance`."""

    __slots__ = ("_is_done", "_late", "_members", "_then")

    kind = "Rebalance"

    def __init__(
        self,
        timeout: float,
        client_id: str,
        since: float,
        members: Callable[[], Iterable[tuple[str, str]]],
        is_done: Callable[[], bool],
        then: Callable[[], object] | None,
        late: Callable[[], object] | None,
    ) -> None:
        """Call `then` when `is_done`, or after `timeout` seconds; `late` only in the latter case."""
        super().__init__(timeout, client_id, since)
        self._members = members
        self._is_done = is_done
        self._then = then
        self._late = late

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return group id and member id of the members that it waits for."""
        return self._members()

    def try_complete(self) -> bool:
        """Complete when the step is done."""
        return self._is_done() and self.force_complete()

    def on_complete(self) -> None:
        """Go on with the rebalance."""
        if self._then is not None:
            self._then()

    def on_expiration(self) -> None:
        """Remove the members that were late."""
        if self._late is not None:
            self._late()


class Session:
    """How long a member may be silent, or one that got an id and has not joined with it yet."""

    __slots__ = ("client_id", "deadline", "group_id", "member_id", "operation", "seconds")

    def __init__(self, group_id: str, member_id: str, client_id: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.client_id = client_id
        self.seconds = 0.0
        self.deadline = 0.0  # seconds on the cluster's clock
        self.operation: DelayedHeartbeat | None = None  # while the session runs


class DelayedHeartbeat(BrokerOperation):
    """A session that runs, in the Heartbeat purgatory, keyed by the session. Only expiry or a cancel ends it."""

    __slots__ = ("_over", "_session")

    kind = "Heartbeat"

    def __init__(self, session: Session, timeout: float, since: float, over: Callable[[Session], object]) -> None:
        """Call `over` in `timeout` seconds, which is what is left until the deadline."""
        super().__init__(timeout, session.client_id, since)
        self._session = session
        self._over = over

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the group id and member id."""
        return ((self._session.group_id, self._session.member_id),)

    def describe(self, broker: int) -> Waiting:
        """Return what `Cluster.waiting` lists, with the deadline that the last heartbeat has set."""
        session = self._session
        since = session.deadline - session.seconds
        return Waiting(broker, self.kind, tuple(self.keys()), self.client_id, since, session.deadline)

    def try_complete(self) -> bool:
        """Return False: a heartbeat does not end it."""
        return False

    def on_expiration(self) -> None:
        """Check whether the member was silent."""
        self._over(self._session)


class Waits:
    """Submits and checks the operations of one shard's groups."""

    def __init__(
        self,
        rebalance: Purgatory[DelayedRebalance],
        heartbeat: Purgatory[DelayedHeartbeat],
        now: Callable[[], float],
        expired: Callable[[str, str], object],
    ) -> None:
        """Take the clock, in seconds, and a callback `expired(group id, member id)` for sessions."""
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
        late: Callable[[], object] | None = None,
    ) -> None:
        """Call `then` when `is_done` at a `check` of `key`, or after `seconds`; `late` only in the latter case."""
        operation = DelayedRebalance(seconds, client_id, self._now(), members, is_done, then, late)
        self._rebalance.try_complete_else_watch(operation, [key])

    def check(self, key: Hashable) -> None:
        """Check the operations that wait for a group, or for a member."""
        self._rebalance.check_and_complete(key)

    def forget(self, key: Hashable) -> None:
        """Cancel the operations that wait for a group."""
        self._rebalance.cancel_for_key(key)

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
