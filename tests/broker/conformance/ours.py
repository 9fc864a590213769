"""Our cluster as the brokers of a scenario: its clock is held, so that what takes seconds takes none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from abeyant.broker import Cluster
from abeyant.broker.transactions.shard import TransactionShard

from .client import Connection
from .settings import ADMIN, GUARDED, PASSWORDS, SETTINGS


class OurKafka:
    """Plays scenarios on a cluster that runs."""

    patience = 5.0

    def __init__(self, cluster: Cluster, guarded: bool = False) -> None:
        self._cluster = cluster
        self._guarded = guarded
        self._ports = dict(enumerate((int(one.rpartition(":")[2]) for one in cluster.bootstrap.split(",")), 1))

    def connect(self, broker: int, client_id: str | None = "conformance", user: str = ADMIN) -> Connection:
        connection = Connection("127.0.0.1", self._ports[broker], client_id)
        return connection.log_in(user, PASSWORDS[user]) if self._guarded else connection

    @contextlib.contextmanager
    def paused(self, broker: int) -> Iterator[None]:
        self._cluster.pause(broker)
        try:
            yield
        finally:
            self._cluster.resume(broker)

    def elapse(self, seconds: float) -> None:
        self._cluster.clock.advance(seconds)

    def hasten(self, seconds: float) -> None:
        self._cluster.clock.advance(seconds)

    def raise_epoch(self, transactional_id: str, epoch: int) -> None:
        """Tens of thousands of requests would take a minute to do so. The next one writes it to the log."""

        def change() -> None:
            shard = self._cluster.brokers[1].transaction_coordinator.shard(transactional_id)
            assert isinstance(shard, TransactionShard)
            transaction = shard.transactions[transactional_id]
            transaction.now = transaction.now._replace(epoch=epoch)

        self._cluster._on_loop(change)

    def await_read(self, broker: int) -> None:
        """One loop reads for all brokers, and what was sent is there: at the second answer that has been read too."""
        with self.connect(broker) as connection:
            for _ in range(2):
                connection.ask("ApiVersions", 0, {})


@contextlib.contextmanager
def our_kafka(guarded: bool = False) -> Iterator[OurKafka]:
    """Three of our brokers with the settings of this set."""
    if guarded:
        with Cluster(brokers=3, clock="held", security="SASL_PLAINTEXT", users=PASSWORDS, settings=GUARDED) as cluster:
            yield OurKafka(cluster, guarded)
        return
    with Cluster(brokers=3, clock="held", settings=SETTINGS) as cluster:
        yield OurKafka(cluster)
