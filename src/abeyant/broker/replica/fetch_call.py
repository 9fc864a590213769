"""A follower's fetch as a call, so that faults can delay, refuse or drop it like a client's request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import follower_name
from abeyant.broker.replica.messages import PartitionResponse, ReplicaFetch, ReplicaResponse
from abeyant.broker.wire.apis import BY_NAME, Api
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.ports import Broker


class ReplicaFetchCall:
    """A `ReplicaFetch` that faults may delay. Call one of `proceed`, `refuse` and `drop`, once."""

    def __init__(self, broker: Broker, fetch: ReplicaFetch) -> None:
        self.broker = broker  # the leader
        self.fetch = fetch
        self.since = broker.now()  # seconds on the broker's clock
        self.local: float | None = None

    @property
    def api(self) -> Api:
        """Return the Fetch API."""
        return BY_NAME["Fetch"]

    @property
    def client_id(self) -> str:
        """Return the client id of the follower's fetcher."""
        return follower_name(self.fetch.follower)

    def proceed(self) -> None:
        """Handle the fetch."""
        self.broker.handle_fetch(self.fetch)

    def refuse(self, error: ErrorCode) -> None:
        """Respond with an error for each partition. The follower retries after its backoff."""
        refused = [PartitionResponse(*position[:3], error) for position in self.fetch.positions]
        if not refused:
            self.drop()
            return
        self.broker.answer_follower(self.fetch.follower, ReplicaResponse(self.broker.id, self.fetch.number, refused))

    def drop(self) -> None:
        """Drop the fetch. The follower starts a new session after its backoff."""
        follower = self.broker.cluster.brokers.get(self.fetch.follower)
        if follower is not None:
            self.broker.cluster.network.send(follower, follower.fetchers.failed, self.broker.id, self.fetch.number)
