"""Write the markers of a committed or aborted transaction: one marker to each of its partitions, through the leader.

The decision is already in the log, so requests are retried until every partition has its marker, even while leaders
move, stop or pause. A new coordinator loads the log and sends all markers again; a second marker is harmless. Kafka:
`TransactionMarkerChannelManager`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from abeyant.broker.transactions.transaction import Key, Transaction
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition

_BACKOFF = 0.1  # seconds until a failed request to a leader is retried
# INVALID_PRODUCER_EPOCH: a newer epoch has written there, so this transaction has already ended there.
_DONE = (ErrorCode.none, ErrorCode.invalid_producer_epoch)


class Markers:
    """The sender of the markers of one shard's transactions. Use from the loop's thread only."""

    def __init__(self, broker: Broker, partition: Partition, done: Callable[[Transaction], object]) -> None:
        """Prepare to send markers for the transactions of the shard of `partition`.

        `done` is called with a transaction once each of its partitions has a marker.
        """
        self._broker = broker
        self._partition = partition
        self._done = done
        self._left: dict[Transaction, set[Key]] = {}

    def left(self, transaction: Transaction) -> Iterable[Key]:
        """Return the transaction's partitions that have no marker yet."""
        return self._left.get(transaction, transaction.now.partitions)

    def send(self, transaction: Transaction) -> None:
        """Start sending the markers of a transaction."""
        self._left[transaction] = set(transaction.now.partitions)
        self._send(transaction, transaction.now.partitions)

    def stop(self) -> None:
        """Stop sending markers, as another broker is the coordinator now."""
        self._left.clear()

    def _send(self, transaction: Transaction, keys: Iterable[Key]) -> None:
        remaining = self._left.get(transaction)
        if remaining is None:
            return
        by_leader = defaultdict(list)
        topics = self._broker.cluster.controller.topics
        for key in sorted(remaining.intersection(keys)):
            topic = topics.get(key[0])
            if topic is None or key[1] >= len(topic.partitions):
                remaining.discard(key)  # it was deleted
            else:
                by_leader[topic.partitions[key[1]].leader].append(key)
        client_id = f"broker-{self._broker.id}-txn-marker-sender"
        for leader, batch in by_leader.items():
            callback = partial(self._receive, transaction, batch)
            self._broker.ask(leader, "WriteTxnMarkers", self._request(transaction, batch), batch, client_id, callback)
        self._check_done(transaction)

    def _request(self, transaction: Transaction, keys: list[Key]) -> Message:
        now = transaction.now
        topics = defaultdict(list)
        for topic, index in keys:
            topics[topic].append(index)
        marker = Message(
            producer_id=now.producer_id,
            producer_epoch=now.epoch,
            transaction_result=now.commits,
            topics=[Message(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
            coordinator_epoch=self._partition.state.leader_epoch,
            transaction_version=now.version,
        )
        return Message(markers=[marker])

    def _receive(self, transaction: Transaction, keys: list[Key], response: Any) -> None:
        remaining = self._left.get(transaction)
        if remaining is None:
            return
        if response is not None:
            for marker in response.markers:
                for topic in marker.topics:
                    remaining.difference_update(
                        (topic.name, row.partition_index) for row in topic.partitions if row.error_code in _DONE
                    )
        if not remaining.isdisjoint(keys):
            self._broker.timer.call_later(_BACKOFF, self._send, transaction, keys)
        self._check_done(transaction)

    def _check_done(self, transaction: Transaction) -> None:
        if not self._left.get(transaction, True):
            del self._left[transaction]
            self._done(transaction)
