"""The state machine of one transactional id: its transitions and epochs. No I/O, no clock.

A change has two steps. First a method checks the status `now`, then raises ApiError or returns the next `Status` and
sets it as `pending`: until the pending status is replicated, nothing else may change. Then `apply` makes it current, or
`discard` drops it if the write failed.

The producer's epoch is bumped
* by InitProducerId, to fence the previous producer of the id;
* when the coordinator aborts a transaction: after a time-out, or because another producer takes over the id;
* for clients of transaction.version 2 at the end of every transaction, so that a late request of one transaction cannot
  become part of the next (KIP-890).
When a producer id has no epochs left, the transactional id gets another producer id.

(Kafka: `TransactionMetadata`, `TransactionCoordinator`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.log.batch import NO_PRODUCER
from abeyant.broker.wire.schema import ErrorCode

Key = tuple[str, int]  # topic and partition

NO_EPOCH = -1
NO_TIME = -1
_LAST_EPOCH = 32_766  # Kafka reserves 32767 for fencing


class State(Enum):
    """The state of a transactional id: `shown` is its name in DescribeTransactions, `number` its code in records."""

    EMPTY = "Empty", 0
    ONGOING = "Ongoing", 1
    PREPARE_COMMIT = "PrepareCommit", 2
    PREPARE_ABORT = "PrepareAbort", 3
    COMPLETE_COMMIT = "CompleteCommit", 4
    COMPLETE_ABORT = "CompleteAbort", 5
    DEAD = "Dead", 6
    PREPARE_EPOCH_FENCE = "PrepareEpochFence", 7

    def __init__(self, shown: str, number: int) -> None:
        self.shown = shown
        self.number = number


BY_NUMBER = {state.number: state for state in State}
BY_NAME = {state.shown: state for state in State}
ENDING = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
_IDLE = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Status(NamedTuple):
    """The fields of a transactional id's record, and `last_epoch`, which is not in the record."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: State
    partitions: frozenset[Key] = frozenset()
    updated_ms: int = NO_TIME
    started_ms: int = NO_TIME
    version: int = 0
    """The client's transaction version."""
    last_epoch: int = NO_EPOCH
    """The producer's previous epoch, by which a retried request is recognised."""
    previous_id: int = NO_PRODUCER
    next_id: int = NO_PRODUCER
    """The producer id to use after this transaction, if the current one has no epochs left."""

    @property
    def bumps(self) -> bool:
        """Return whether the end of every transaction bumps the epoch."""
        return self.version >= BUMPS_SINCE

    @property
    def is_exhausted(self) -> bool:
        """Return whether the producer id has no epochs left."""
        return self.epoch >= _LAST_EPOCH

    @property
    def commits(self) -> bool:
        """Return whether the transaction is being committed."""
        return self.state is State.PREPARE_COMMIT


BUMPS_SINCE = 2  # transaction version: from it on, the end of every transaction bumps the epoch


class Producer(NamedTuple):
    """A producer id and epoch, as a client sends them."""

    id: int
    epoch: int


class Transaction:
    """One transactional id: its status `now`, and the `pending` status of a change, if any."""

    __slots__ = ("id", "now", "pending")

    def __init__(self, transactional_id: str, now: Status) -> None:
        self.id = transactional_id
        self.now = now
        self.pending: Status | None = None

    # -- a change in two steps

    def apply(self) -> None:
        """Make the pending status current. Call this once it is replicated."""
        assert self.pending is not None
        self.now, self.pending = self.pending, None

    def discard(self) -> None:
        """Drop the pending status. Call this if it could not be written."""
        self.pending = None

    def _next(self, status: Status) -> Status:
        """Set and return the pending status. Its `previous_id` is the current producer id, as in Kafka."""
        self.pending = status._replace(previous_id=self.now.producer_id)
        return self.pending

    # -- transitions

    def initialize(self, timeout_ms: int, expected: Producer | None, new_id: int, now_ms: int) -> Status | None:
        """Assign an epoch to a new producer, or to the `expected` producer, which recovers from an error (KIP-360).

        `new_id` is used if this producer id has no epochs left. Return None if a transaction is open, which `fence` has
        to abort first. Raises ApiError: CONCURRENT_TRANSACTIONS, PRODUCER_FENCED.
        """
        now = self.now
        self._check_not_pending()
        if expected is not None and not self._is_known(expected):
            raise ApiError(ErrorCode.producer_fenced)
        if now.state in ENDING:
            raise ApiError(ErrorCode.concurrent_transactions)
        if now.state is State.ONGOING:
            return None
        fresh = now._replace(
            state=State.EMPTY, timeout_ms=timeout_ms, partitions=frozenset(), started_ms=NO_TIME, updated_ms=now_ms,
            next_id=NO_PRODUCER, version=0,
        )  # fmt: skip
        if now.is_exhausted and (expected is None or expected.epoch == now.epoch):
            last = NO_EPOCH if expected is None else now.epoch
            return self._next(fresh._replace(producer_id=new_id, epoch=0, last_epoch=last))
        if expected is None:
            return self._next(fresh._replace(epoch=now.epoch + 1, last_epoch=NO_EPOCH))
        if now.epoch in (NO_EPOCH, expected.epoch):
            return self._next(fresh._replace(epoch=now.epoch + 1, last_epoch=now.epoch))
        if expected.epoch == now.last_epoch:
            return self._next(fresh)  # a retry: the response was lost
        raise ApiError(ErrorCode.producer_fenced)

    def _is_known(self, expected: Producer) -> bool:
        now = self.now
        return (
            now.epoch == NO_EPOCH
            or expected.id == now.producer_id
            or (expected.id == now.previous_id and expected.epoch >= _LAST_EPOCH)
        )

    def verify(self, producer: Producer, keys: Iterable[Key]) -> dict[Key, ErrorCode]:
        """Return NONE for each partition that is part of the transaction, else an error. Raises ApiError."""
        self._check_producer(producer)
        if self.now.state in ENDING:
            raise ApiError(ErrorCode.concurrent_transactions)
        return {key: ErrorCode.none if key in self.now.partitions else ErrorCode.transaction_abortable for key in keys}

    def add(self, producer: Producer, keys: Iterable[Key], version: int, now_ms: int) -> Status | None:
        """Add partitions, and begin a transaction if none is open. Return None if nothing changes. Raises ApiError."""
        now = self.now
        self._check_not_pending()
        self._check_producer(producer)
        if now.state in ENDING:
            raise ApiError(ErrorCode.concurrent_transactions)
        partitions = now.partitions.union(keys)
        if now.state is State.ONGOING and partitions == now.partitions:
            return None
        return self._next(
            now._replace(
                state=State.ONGOING, partitions=partitions, version=version, updated_ms=now_ms,
                started_ms=now_ms if now.state in _IDLE else now.started_ms,
            )
        )  # fmt: skip

    def _check_producer(self, producer: Producer) -> None:
        if producer.id != self.now.producer_id:
            raise ApiError(ErrorCode.invalid_producer_id_mapping)
        if producer.epoch != self.now.epoch:
            raise ApiError(ErrorCode.producer_fenced)

    def end(self, producer: Producer, *, commits: bool, version: int, new_id: int, now_ms: int) -> Status | None:
        """Commit or abort the transaction. Return None for a retry of a completed request. Raises ApiError.

        `version` is the client's transaction version; `new_id` is used if this producer id has no epochs left.
        """
        if version >= BUMPS_SINCE:
            return self._end_and_bump(producer, commits, version, new_id, now_ms)
        self._check_not_pending()
        self._check_producer(producer)
        now = self.now
        if now.state is State.ONGOING:
            return self._begin_end(commits, version, NO_PRODUCER, now_ms)
        if now.state in ENDING and commits is now.commits:
            raise ApiError(ErrorCode.concurrent_transactions)
        if now.state is (State.COMPLETE_COMMIT if commits else State.COMPLETE_ABORT):
            return None
        raise ApiError(ErrorCode.invalid_txn_state)

    def _check_not_pending(self) -> None:
        if self.pending is not None:
            raise ApiError(ErrorCode.concurrent_transactions)

    def _end_and_bump(self, producer: Producer, commits: bool, version: int, new_id: int, now_ms: int) -> Status | None:
        """End a transaction of version 2. A request with the previous epoch is a retry, with the current epoch new."""
        self._check_not_pending()
        now = self.now
        is_retry_with_new_id = producer.id == now.previous_id and producer.epoch == _LAST_EPOCH and now.epoch == 0
        is_retry = is_retry_with_new_id or producer.epoch + 1 == now.epoch
        if producer.id != now.producer_id and not is_retry_with_new_id:
            raise ApiError(ErrorCode.invalid_producer_id_mapping)
        same = producer.epoch == now.epoch
        done = now.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
        if not (is_retry if now.state in ENDING else same or (done and is_retry)):
            raise ApiError(ErrorCode.producer_fenced)
        if now.state is State.ONGOING:
            return self._begin_end(commits, version, new_id, now_ms)
        if now.state in ENDING and commits is now.commits:
            raise ApiError(ErrorCode.concurrent_transactions)
        if done and is_retry:
            if commits is (now.state is State.COMPLETE_COMMIT):
                return None
        elif not commits and now.state in _IDLE:  # no partition was added, but records may be in flight
            return self._begin_end(commits, version, new_id, now_ms)
        raise ApiError(ErrorCode.invalid_txn_state)

    def fence(self, new_id: int, now_ms: int) -> Status | None:
        """Abort the open transaction with a new epoch that its producer does not know.

        Return None if no transaction is open, or while a change is pending.

        If this producer id has no epochs left, `new_id` with epoch 0 replaces it when the abort completes, as after
        every transaction. So the new producer starts with epoch 1.
        """
        if self.pending is not None or self.now.state is not State.ONGOING:
            return None
        return self._begin_end(False, BUMPS_SINCE, new_id, now_ms)

    def _begin_end(self, commits: bool, version: int, new_id: int, now_ms: int) -> Status:
        now = self.now
        following = now._replace(
            state=State.PREPARE_COMMIT if commits else State.PREPARE_ABORT, updated_ms=now_ms, version=version,
            started_ms=now_ms if now.state in _IDLE else now.started_ms,
        )  # fmt: skip
        if following.bumps:
            next_id = new_id if now.is_exhausted else NO_PRODUCER
            epoch = min(now.epoch + 1, _LAST_EPOCH + 1)
            following = following._replace(epoch=epoch, last_epoch=now.epoch, next_id=next_id)
        return self._next(following)

    def complete(self, now_ms: int) -> Status:
        """Set and return the completed status as pending. Call this when all partitions have their markers."""
        now = self.now
        completed = now._replace(
            state=State.COMPLETE_COMMIT if now.commits else State.COMPLETE_ABORT, partitions=frozenset(),
            updated_ms=now_ms,
        )  # fmt: skip
        if now.next_id != NO_PRODUCER:
            # `last_epoch` stays the last epoch that a client got. The epoch of the markers is another.
            completed = completed._replace(producer_id=now.next_id, next_id=NO_PRODUCER, epoch=0)
        return self._next(completed)

    def expire(self, now_ms: int) -> bool:
        """Set the pending status to DEAD and return True. Return False if a transaction is open or a change pending."""
        if self.pending is not None or self.now.state not in _IDLE:
            return False
        self._next(self.now._replace(state=State.DEAD, updated_ms=now_ms))
        return True
