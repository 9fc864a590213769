"""The transactional ids of one partition of `__transaction_state`, on the broker that leads it.

Every change of an id is written to the log, and takes effect when all in-sync replicas have it; until then another
change of this id fails with CONCURRENT_TRANSACTIONS. Each id has one timer, which aborts the open transaction after its
time-out, or removes the id after `transactional.id.expiration.ms` without use. Kafka does both in scans over all ids,
every `transaction.abort.timed.out.transaction.cleanup.interval.ms` and
`transaction.remove.expired.transaction.cleanup.interval.ms` from the broker's start. Here an id's timer expires when
the first such scan would find the id. Kafka: `TransactionCoordinator`, `TransactionStateManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.clock import until_scan
from abeyant.broker.coordinator.shard import Shard
from abeyant.broker.errors import ApiError
from abeyant.broker.log.batch import NO_PRODUCER
from abeyant.broker.transactions.markers import Markers
from abeyant.broker.transactions.record import id_of, key_bytes, read_status, value_bytes
from abeyant.broker.transactions.transaction import ENDING, NO_EPOCH, Key, Producer, State, Status, Transaction
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.log import Batch
    from abeyant.broker.log.records import Record
    from abeyant.broker.replica.partition import Partition
    from abeyant.purgatory.ports import Stoppable

Then = Callable[[ErrorCode], object]
OnProducer = Callable[[ErrorCode, Producer], object]

_BACKOFF = 0.1  # seconds until a failed write of a transaction's completion is retried
_NO_TIMEOUT = (1 << 31) - 1  # ms: the time-out of a transaction in a two-phase commit

NOBODY = Producer(NO_PRODUCER, NO_EPOCH)


class TransactionShard(Shard):
    """The transaction coordinator's state in one partition. Use from the loop's thread only."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        super().__init__(broker, partition)
        settings = broker.cluster.settings
        self.transactions: dict[str, Transaction] = {}
        self._markers = Markers(broker, partition, self._complete)
        self._timers: dict[str, Stoppable] = {}
        self._ended = False
        self._expiration_ms: int = settings["transactional.id.expiration.ms"]
        self._abort_interval_ms: int = settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        self._expiration_interval_ms: int = settings["transaction.remove.expired.transaction.cleanup.interval.ms"]

    # -- as a shard

    def replay(self, record: Record, batch: Batch) -> None:
        """Apply a record of the log."""
        transactional_id = None if record.key is None else id_of(record.key)
        if transactional_id is None:
            return
        if record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = Transaction(transactional_id, read_status(record.value))

    def begin(self) -> None:
        """Start timers, and send the markers of transactions that are being committed or aborted."""
        for transaction in list(self.transactions.values()):
            self._start_timer(transaction)
            if transaction.now.state in ENDING:
                self._markers.send(transaction)

    def end(self) -> None:
        """Cancel timers and stop sending markers, as another broker coordinates now. `write` fails pending writes."""
        self._ended = True
        self._markers.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # -- requests of clients

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None, then: OnProducer) -> None:
        """Assign a producer id and epoch. If a transaction is open, abort it instead: the client has to retry."""
        transaction = self.transactions.get(transactional_id)
        try:
            if transaction is None:
                fresh = Status(self._new_id(), NO_EPOCH, timeout_ms, State.EMPTY)
                transaction = self.transactions[transactional_id] = Transaction(transactional_id, fresh)
            spare_id = self._spare_id(transaction)
            status = transaction.initialize(timeout_ms, expected, spare_id, self.broker.now_ms())
        except ApiError as error:
            then(error.code, NOBODY)
            return
        if status is not None:
            self._change_producer(transaction, Producer(status.producer_id, status.epoch), then)
        else:  # the client retries once the open transaction is aborted
            again = {ErrorCode.none: ErrorCode.concurrent_transactions}
            self._fence(transaction, spare_id, lambda error: then(again.get(error, error), NOBODY))

    def _fence(self, transaction: Transaction, spare_id: int, then: Then) -> None:
        """Abort the open transaction, so that its producer cannot continue."""
        if transaction.fence(spare_id, self.broker.now_ms()) is None:
            then(ErrorCode.concurrent_transactions)
        else:
            self._change(transaction, then)

    def verify(self, transactional_id: str, producer: Producer, keys: Iterable[Key]) -> dict[Key, ErrorCode]:
        """Return NONE for each partition that is part of the transaction, else an error. Raises ApiError."""
        return self._require(transactional_id).verify(producer, keys)

    def add(self, transactional_id: str, producer: Producer, keys: Iterable[Key], version: int, then: Then) -> None:
        """Add partitions to a producer's transaction."""
        try:
            transaction = self._require(transactional_id)
            status = transaction.add(producer, keys, version, self.broker.now_ms())
        except ApiError as error:
            then(error.code)
            return
        if status is None:
            then(ErrorCode.none)
        else:
            self._change(transaction, then)

    def finish(self, transactional_id: str, producer: Producer, commits: bool, version: int, then: OnProducer) -> None:
        """Commit or abort. Call `then` once the decision is in the log. The markers are sent after that."""
        try:
            transaction = self._require(transactional_id)
            status = transaction.end(
                producer, commits=commits, version=version, new_id=self._spare_id(transaction),
                now_ms=self.broker.now_ms(),
            )  # fmt: skip
        except ApiError as error:
            then(error.code, NOBODY)
            return
        now = status or transaction.now
        following = Producer(now.producer_id, now.epoch) if now.next_id == NO_PRODUCER else Producer(now.next_id, 0)
        if status is None:
            then(ErrorCode.none, following)
        else:
            self._change_producer(transaction, following, then)

    def partitions_of(self, transaction: Transaction) -> Iterable[Key]:
        """Return the partitions of a transaction: only those without a marker, once markers are being sent."""
        return self._markers.left(transaction)

    def _require(self, transactional_id: str) -> Transaction:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(ErrorCode.invalid_producer_id_mapping)
        return transaction

    def _new_id(self) -> int:
        return self.broker.cluster.controller.allocate_producer_id()

    def _spare_id(self, transaction: Transaction) -> int:
        return self._new_id() if transaction.now.is_exhausted else NO_PRODUCER

    # -- changes

    def _change_producer(self, transaction: Transaction, producer: Producer, then: OnProducer) -> None:
        self._change(transaction, lambda error: then(error, producer if error is ErrorCode.none else NOBODY))

    def _change(self, transaction: Transaction, then: Then) -> None:
        """Write the pending state to the log. Then apply it, or discard it if the write failed."""
        pending = transaction.pending
        assert pending is not None

        def written(error: ErrorCode) -> None:
            if self._ended:
                then(ErrorCode.not_coordinator)
                return
            done = error is ErrorCode.none
            if done:
                transaction.apply()
            else:
                transaction.discard()
            self._start_timer(transaction)
            then(error)
            if done and pending.state in ENDING:
                self._markers.send(transaction)

        entry = key_bytes(transaction.id), value_bytes(pending)
        # Wait as long as the transaction's time-out, as Kafka does.
        self.write([entry], written, timeout=pending.timeout_ms / 1000, replayed=False)

    def _complete(self, transaction: Transaction) -> None:
        """Complete a transaction whose partitions all have their markers, unless this shard has ended."""

        def written(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                self.broker.timer.call_later(_BACKOFF, self._complete, transaction)

        if not self._ended:
            transaction.complete(self.broker.now_ms())
            self._change(transaction, written)

    # -- time

    def _start_timer(self, transaction: Transaction) -> None:
        """Start the timer for the time-out of the open transaction, or else for the expiry of the id."""
        timer = self._timers.pop(transaction.id, None)
        if timer is not None:
            timer.cancel()
        now = transaction.now
        if now.state is State.ONGOING:
            if now.timeout_ms == _NO_TIMEOUT:
                return
            due, interval, do = now.started_ms + now.timeout_ms, self._abort_interval_ms, self._time_out
        elif now.state in ENDING:
            return
        else:  # -1: a scan at the expiration itself already removes the id
            due, interval, do = now.updated_ms + self._expiration_ms - 1, self._expiration_interval_ms, self._expire
        delay = until_scan(self.broker.started_ms, interval, due, self.broker.now_ms())
        self._timers[transaction.id] = self.broker.timer.call_later(delay, do, transaction)

    def _time_out(self, transaction: Transaction) -> None:
        """Abort the transaction. If a change is pending, the timer restarts when the change completes."""
        if not self._ended:
            self._fence(transaction, self._spare_id(transaction), lambda _: None)

    def _expire(self, transaction: Transaction) -> None:
        if self._ended or not transaction.expire(self.broker.now_ms()):
            return

        def written(error: ErrorCode) -> None:
            if self._ended:
                return
            if error is ErrorCode.none:
                self._timers.pop(transaction.id, None)
                del self.transactions[transaction.id]
            else:
                transaction.discard()
                self._start_timer(transaction)

        self.write([(key_bytes(transaction.id), None)], written, timeout=self.broker.request_timeout, replayed=False)
