"""A follower's fetch: waits until there is something that the follower does not have, or for 500 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyance import DelayedOperation

if TYPE_CHECKING:
    from abeyance.broker.replica.session import Session


class DelayedReplicaFetch(DelayedOperation):
    """In the Fetch purgatory of the leader, on all partitions of the session."""

    __slots__ = ("_session",)

    kind = "Fetch"

    def __init__(self, session: Session, timeout: float) -> None:
        """`timeout` in seconds: `replica.fetch.wait.max.ms`."""
        super().__init__(timeout)
        self._session = session

    @property
    def client_id(self) -> str:
        """As Kafka's own fetchers call themselves."""
        return f"broker-{self._session.follower}-fetcher-0"

    def try_complete(self) -> bool:
        """No look at a log: whoever appends says that there is something to be told."""
        return self._session.has_news and self.force_complete()

    def on_complete(self) -> None:
        """Answer, with nothing too."""
        self._session.completed()
