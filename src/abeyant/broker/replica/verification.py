"""Transactional records are taken only once their coordinator has said that the transaction is open here (KIP-890).

Without that a record that comes late, behind its transaction's marker, would begin a transaction that nobody ends. So
before its first record of a transaction is appended the coordinator is asked; a marker that comes in between takes the
question back.
"""

from __future__ import annotations

from abeyant.broker.log import Batch, Log
from abeyant.broker.log.errors import InvalidTransactionStateError, OutOfOrderSequenceError


class Verification:
    """That a producer's coordinator is being asked, or has said yes. Its identity is what counts."""

    __slots__ = ("bumps", "epoch", "first_sequence", "producer_id")

    def __init__(self, producer_id: int, epoch: int, first_sequence: int, *, bumps: bool) -> None:
        """`bumps`: whether the producer's epoch grows with every transaction, so that each begins at sequence 0."""
        self.producer_id = producer_id
        self.epoch = epoch
        self.first_sequence = first_sequence
        self.bumps = bumps


class Verifications:
    """Those of one partition, by producer. Only its leader has any."""

    __slots__ = ("_by_producer", "_log")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._by_producer: dict[int, Verification] = {}

    def needed(self, producer_id: int, epoch: int, sequence: int, *, bumps: bool) -> Verification | None:
        """What a batch is to be appended with, once the coordinator has said yes; None where nobody need be asked."""
        if self._log.in_transaction(producer_id, epoch):
            return None
        known = self._by_producer.get(producer_id)
        if known is None or known.epoch != epoch:
            known = self._by_producer[producer_id] = Verification(producer_id, epoch, sequence, bumps=bumps)
        known.first_sequence = min(known.first_sequence, sequence)
        return known

    def check(self, batch: Batch, given: Verification | None) -> None:
        """Refuse a client's batch that is part of no transaction, or not its first.

        Raises InvalidTransactionStateError, OutOfOrderSequenceError.
        """
        producer_id = batch.producer_id
        if not batch.is_transactional or self._log.in_transaction(producer_id, batch.producer_epoch):
            return
        if given is None or not self.holds(given):
            raise InvalidTransactionStateError("Record was not part of an ongoing transaction")
        sequence = batch.base_sequence
        if given.bumps and sequence and self._log.producer(producer_id) is None:
            raise OutOfOrderSequenceError(
                f"Invalid sequence number for producer {producer_id}: {sequence} (incoming seq. number). Expected"
                " sequence 0 for transactions v2 idempotent producer with no existing state."
            )
        if sequence > given.first_sequence:
            raise OutOfOrderSequenceError(
                f"Out of order sequence number for producer {producer_id}: {sequence} (incoming seq. number),"
                f" {given.first_sequence} (earliest seen sequence)"
            )

    def holds(self, given: Verification) -> bool:
        """Whether nothing has taken it back meanwhile."""
        return self._by_producer.get(given.producer_id) is given

    def forget(self, producer_id: int) -> None:
        """Its transaction has begun here, or has ended."""
        self._by_producer.pop(producer_id, None)

    def clear(self) -> None:
        """This replica leads no more."""
        self._by_producer.clear()
