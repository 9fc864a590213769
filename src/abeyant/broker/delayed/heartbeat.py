"""A member's session: waits until the member has been silent for too long.

A heartbeat does not touch the operation: it moves the session's `deadline`, which is one store. When the operation's
own time is over it is looked whether there was a heartbeat, and then a new one waits for what is left. So 100,000
members cost a store a heartbeat, and an operation each per session time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.waiting import BrokerOperation, Waiting

if TYPE_CHECKING:
    from abeyant.broker.groups.member import Session


class DelayedHeartbeat(BrokerOperation):
    """In the Heartbeat purgatory, on the session."""

    __slots__ = ("_over", "_session")

    kind = "Heartbeat"

    def __init__(self, session: Session, timeout: float, since: float, over: Callable[[Session], object]) -> None:
        """`over` is called when the time is; `timeout` in seconds, what is left until the deadline."""
        super().__init__(timeout, session.client_id, since)
        self._session = session
        self._over = over

    def keys(self) -> Iterable[tuple[str, str]]:
        """The member that it is the session of."""
        return ((self._session.group_id, self._session.member_id),)

    def told(self, broker: int) -> Waiting:
        """With the deadline that the last heartbeat has set."""
        session = self._session
        since = session.deadline - session.seconds
        return Waiting(broker, self.kind, tuple(self.keys()), self.client_id, since, session.deadline)

    def try_complete(self) -> bool:
        """Never: a member that leaves has it cancelled."""
        return False

    def on_expiration(self) -> None:
        """See whether the member was silent."""
        self._over(self._session)
