"""A follower's fetch: waits until there is something that the follower does not have, or for 500 ms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.waiting import BrokerOperation

if TYPE_CHECKING:
    from abeyant.broker.replica.session import Session


class DelayedReplicaFetch(BrokerOperation):
    """In the Fetch purgatory of the leader, on all partitions of the session."""

    __slots__ = ("_session",)

    kind = "Fetch"

    def __init__(self, session: Session, timeout: float, since: float) -> None:
        """`timeout` in seconds: `replica.fetch.wait.max.ms`."""
        super().__init__(timeout, session.client_id, since)
        self._session = session

    def keys(self) -> Iterable[tuple[str, int]]:
        """All that it follows here."""
        return self._session.followed()

    def try_complete(self) -> bool:
        """No look at a log: whoever appends says that there is something to be told."""
        return self._session.has_news and self.force_complete()

    def on_complete(self) -> None:
        """Answer, with nothing too."""
        self._session.completed()
