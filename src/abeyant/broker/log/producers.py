"""The producers that wrote to a log: epochs, sequence numbers, open transactions (KIP-98).

A producer's state has its last five batches, as many as an idempotent producer has in flight. A batch that repeats one
of the five is a duplicate and gets the first response again. A batch after a gap in the sequence numbers is rejected,
so that nothing is lost silently. A batch of an older epoch is rejected, since a newer producer uses the id.

All state can be rebuilt from batch headers. With a `snapshot`, the batches before the snapshot need not be read.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from abeyant.broker.log.errors import (
    CoordinatorFencedError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
)

if TYPE_CHECKING:
    from abeyant.broker.log.batch import Batch
    from abeyant.broker.log.markers import Marker

_WINDOW = 5
_NO_EPOCH = -1
_NO_SEQUENCE = -1
_LARGEST_SEQUENCE = (1 << 31) - 1
_marker_offset = attrgetter("last_offset")  # sort key of aborted transactions


class WrittenBatch(NamedTuple):
    """An appended batch's sequence numbers, offsets and timestamp, kept for the response to a duplicate."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int  # ms, the batch's greatest


class AbortedTransaction(NamedTuple):
    """A transaction whose records a read_committed consumer skips."""

    producer_id: int
    first_offset: int
    last_offset: int  # the marker's offset
    last_stable_offset: int  # the log's, once the marker was written


@dataclass(slots=True)
class ProducerState:
    """One producer's state in one log: its epochs, its last batches, and where its open transaction begins."""

    producer_id: int
    epoch: int = _NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1  # ms; the state expires `producer.id.expiration.ms` after it
    transaction_start: int | None = None
    batches: list[WrittenBatch] = field(default_factory=list)  # the last five of this epoch, oldest first

    @property
    def last_sequence(self) -> int:
        """Return the last sequence number of this epoch; -1 before the epoch's first batch."""
        return self.batches[-1].last_sequence if self.batches else _NO_SEQUENCE

    def to_list(self) -> list[Any]:
        """Return the fields as a list that JSON can write, for a snapshot."""
        return [
            self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp, self.transaction_start,
            [list(batch) for batch in self.batches],
        ]  # fmt: skip

    @classmethod
    def from_list(cls, fields: list[Any]) -> ProducerState:
        """Build the state from the result of `to_list`. Raises TypeError or ValueError if `fields` is malformed."""
        state = cls(*fields)
        state.batches = [WrittenBatch(*batch) for batch in state.batches]
        return state


class Producers:
    """All producers of one log, and the transactions that they have open or have aborted."""

    def __init__(self) -> None:
        """Create the state of an empty log: no producers."""
        self._states: dict[int, ProducerState] = {}
        self.open: dict[int, int] = {}  # producer id -> first offset
        self.ended: list[tuple[int, int]] = []  # (first offset, marker's offset) until the high watermark passes it
        self._aborted: list[AbortedTransaction] = []  # sorted by the marker's offset

    def __len__(self) -> int:
        return len(self._states)

    def states(self) -> list[ProducerState]:
        """Return all producers, as DescribeProducers lists them."""
        return list(self._states.values())

    def get(self, producer_id: int) -> ProducerState | None:
        """Return the state of a producer; None if the producer is unknown."""
        return self._states.get(producer_id)

    def duplicate_of(self, batch: Batch) -> WrittenBatch | None:
        """Return the batch among the producer's last five that has the same sequence numbers; None if there is none."""
        state = self._states.get(batch.producer_id)
        if state is None or state.epoch != batch.producer_epoch:
            return None
        first, last = batch.base_sequence, batch.last_sequence
        for earlier in reversed(state.batches):
            if earlier.first_sequence == first and earlier.last_sequence == last:
                return earlier
        return None

    def check_data(self, batch: Batch, *, sequenced: bool) -> None:
        """Check that a batch of data may follow its producer's last batch.

        The sequence number is checked only with `sequenced`, for batches of clients. Raises InvalidProducerEpochError,
        OutOfOrderSequenceError or InvalidTransactionStateError.
        """
        state = self._states.get(batch.producer_id)
        if state is None:
            return  # its records were deleted, or it is new: any sequence may be the first
        _check_epoch(batch, state)
        if sequenced:
            self._check_sequence(batch, state)
        if state.transaction_start is not None and not batch.is_transactional:
            raise InvalidTransactionStateError(
                f"Expected transactional write from producer {batch.producer_id} at offset {batch.base_offset}"
            )

    @staticmethod
    def _check_sequence(batch: Batch, state: ProducerState) -> None:
        first = batch.base_sequence
        if batch.producer_epoch != state.epoch:
            if first and state.epoch != _NO_EPOCH:
                raise OutOfOrderSequenceError(
                    f"Invalid sequence number for new epoch of producer {batch.producer_id} at offset"
                    f" {batch.base_offset}: {batch.producer_epoch} (request epoch), {first} (seq. number),"
                    f" {state.epoch} (current producer epoch)"
                )
            return
        last = state.last_sequence
        if first != last + 1 and not (first == 0 and last == _LARGEST_SEQUENCE):
            raise OutOfOrderSequenceError(
                f"Out of order sequence number for producer {batch.producer_id} at offset {batch.base_offset}:"
                f" {first} (incoming seq. number), {last} (current end sequence number)"
            )

    def check_marker(self, batch: Batch, marker: Marker) -> None:
        """Check that a marker's producer epoch and coordinator epoch are not older than the last known ones.

        Raises InvalidProducerEpochError or CoordinatorFencedError.
        """
        state = self._states.get(batch.producer_id)
        if state is None:
            return
        _check_epoch(batch, state)
        if marker.coordinator_epoch < state.coordinator_epoch:
            raise CoordinatorFencedError(
                f"Invalid coordinator epoch for producerId {batch.producer_id} at offset {batch.base_offset}:"
                f" {marker.coordinator_epoch} (zombie), {state.coordinator_epoch} (current)"
            )

    def note_data(self, batch: Batch) -> None:
        """Update the producer's state after a batch of data was appended."""
        state = self._state_for(batch)
        if len(state.batches) == _WINDOW:
            del state.batches[0]
        last_offset = batch.last_offset
        state.batches.append(
            WrittenBatch(batch.base_sequence, batch.last_sequence, batch.base_offset, last_offset, batch.max_timestamp)
        )
        state.last_timestamp = batch.max_timestamp
        if batch.is_transactional and state.transaction_start is None:
            state.transaction_start = batch.base_offset
            self.open[batch.producer_id] = batch.base_offset

    def note_marker(self, batch: Batch, marker: Marker) -> None:
        """End the producer's transaction after its marker was appended."""
        state = self._state_for(batch)
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp = batch.max_timestamp
        first = self.open.pop(batch.producer_id, None)
        state.transaction_start = None
        if first is None:
            return
        self.ended.append((first, batch.last_offset))
        if not marker.commits:
            stable = min(self.open.values(), default=batch.last_offset + 1)
            self._aborted.append(AbortedTransaction(batch.producer_id, first, batch.last_offset, stable))

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of the earliest transaction that is open or ends at or above the high watermark.

        None if there is none. O(transactions open or just ended). Forget the transactions that ended below the high
        watermark, as it never falls.
        """
        if not self.open and not self.ended:
            return None
        self.ended = [ended for ended in self.ended if ended[1] >= high_watermark]
        offsets = [first for first, _ in self.ended]
        offsets.extend(self.open.values())
        return min(offsets, default=None)

    @property
    def has_transactions(self) -> bool:
        """Return whether a transaction is open, ended above the last known high watermark, or was aborted."""
        return bool(self.open or self.ended or self._aborted)

    @property
    def has_aborted(self) -> bool:
        """Return whether any aborted transaction is known."""
        return bool(self._aborted)

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that have a record in [start, end)."""
        transactions = []
        for transaction in self._aborted[bisect_left(self._aborted, start, key=_marker_offset) :]:
            if transaction.first_offset < end:
                transactions.append(transaction)
            if transaction.last_stable_offset >= end:
                break
        return transactions

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether a producer has an open transaction in this log, in this producer epoch."""
        return producer_id in self.open and self._states[producer_id].epoch == epoch

    def expire(self, now_ms: int, after_ms: int) -> int:
        """Forget producers without an open transaction that wrote nothing for `after_ms`; return how many."""
        producer_ids = [
            state.producer_id
            for state in self._states.values()
            if state.transaction_start is None and now_ms - state.last_timestamp >= after_ms
        ]
        for producer_id in producer_ids:
            del self._states[producer_id]
        return len(producer_ids)

    def forget_before(self, start: int) -> None:
        """Forget transactions that ended before `start`, the new log start. Keep the producers."""
        self.ended = [ended for ended in self.ended if ended[1] >= start]
        del self._aborted[: bisect_left(self._aborted, start, key=_marker_offset)]

    def forget_aborted(self, last_offset: int) -> None:
        """Forget the aborted transaction whose marker is at `last_offset`: compaction has removed all its records."""
        place = bisect_left(self._aborted, last_offset, key=_marker_offset)
        if place < len(self._aborted) and self._aborted[place].last_offset == last_offset:
            del self._aborted[place]

    def snapshot(self) -> dict[str, Any]:
        """Return all state as a dict that JSON can write."""
        return {
            "producers": [state.to_list() for state in self._states.values()],
            "ended": [list(ended) for ended in self.ended],
            "aborted": [list(aborted) for aborted in self._aborted],
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Replace all state by `content`, the result of `snapshot`.

        Raises KeyError, TypeError or ValueError for invalid content. Then discard this object, as it may be incomplete.
        """
        self._states = {state[0]: ProducerState.from_list(state) for state in content["producers"]}
        self.open = {
            state.producer_id: state.transaction_start
            for state in self._states.values()
            if state.transaction_start is not None
        }
        self.ended = [(first, last) for first, last in content["ended"]]
        self._aborted = [AbortedTransaction(*aborted) for aborted in content["aborted"]]

    def _state_for(self, batch: Batch) -> ProducerState:
        """Return the state of a batch's producer. Create it if needed, and forget the batches of another epoch."""
        state = self._states.get(batch.producer_id)
        if state is None:
            state = self._states[batch.producer_id] = ProducerState(batch.producer_id)
        if state.epoch != batch.producer_epoch:
            state.batches.clear()
            state.epoch = batch.producer_epoch
        return state


def _check_epoch(batch: Batch, state: ProducerState) -> None:
    if batch.producer_epoch < state.epoch:
        raise InvalidProducerEpochError(
            f"Epoch of producer {batch.producer_id} at offset {batch.base_offset} is {batch.producer_epoch}, which is"
            f" smaller than the last seen epoch {state.epoch}"
        )
