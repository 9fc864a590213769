"""A follower's fetch on its way in, as faults see it: the same face as a client's call has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import follower_name
from abeyant.broker.replica.messages import Answered, ReplicaAnswer, ReplicaFetch
from abeyant.broker.wire.apis import BY_NAME, Api
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.ports import Broker


class ReplicaFetchCall:
    """What may be done with a `ReplicaFetch`: `proceed`, `refuse` or `drop`, once."""

    __slots__ = ("broker", "fetch")

    def __init__(self, broker: Broker, fetch: ReplicaFetch) -> None:
        self.broker = broker  # the leader
        self.fetch = fetch

    @property
    def api(self) -> Api:
        """Fetch."""
        return BY_NAME["Fetch"]

    @property
    def client_id(self) -> str:
        """As Kafka's own fetchers call themselves."""
        return follower_name(self.fetch.follower)

    def proceed(self) -> None:
        """Fetch."""
        self.broker.handle_fetch(self.fetch)

    def refuse(self, error: ErrorCode) -> None:
        """Answer with an error for each partition: the follower tries again in a while."""
        refused = [
            Answered(position.topic, position.partition, position.leader_epoch, error)
            for position in self.fetch.positions
        ]
        if not refused:
            self.drop()
            return
        self.broker.answer_follower(self.fetch.follower, ReplicaAnswer(self.broker.id, self.fetch.number, refused))

    def drop(self) -> None:
        """Lose it: the follower begins anew in a while."""
        follower = self.broker.cluster.brokers.get(self.fetch.follower)
        if follower is not None:
            self.broker.cluster.network.send(follower, follower.fetchers.failed, self.broker.id, self.fetch.number)
