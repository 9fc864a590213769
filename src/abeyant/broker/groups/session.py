"""A member's session: how long it may be silent.

A heartbeat does not touch the operation that waits: it moves the session's `deadline`, which is one store. When the
operation expires, it is checked whether there was a heartbeat, and then a new one waits for what is left. So 100,000
members cost a store a heartbeat, and an operation each per session time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant.broker.delayed.operation import BrokerOperation, Waiting


class Session:
    """The deadline of one member, and the operation that waits for it."""

    __slots__ = ("client_id", "deadline", "group_id", "member_id", "operation", "seconds")

    def __init__(self, group_id: str, member_id: str, client_id: str) -> None:
        """Create the session of a member, or of one that got an id and has not joined with it yet."""
        self.group_id = group_id
        self.member_id = member_id
        self.client_id = client_id
        self.seconds = 0.0
        self.deadline = 0.0  # seconds on the cluster's clock
        self.operation: DelayedHeartbeat | None = None  # while the session runs


class DelayedHeartbeat(BrokerOperation):
    """Waits in the Heartbeat purgatory, keyed by the session."""

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
        """Return False: only expiry ends it, or a cancel when the member leaves."""
        return False

    def on_expiration(self) -> None:
        """Check whether the member was silent."""
        self._over(self._session)
