"""Accept transactional records only after the coordinator has verified that the transaction is open (KIP-890).

Without verification, a record that arrives after its transaction's marker would begin a transaction that nobody ends.
So the first batch of a transaction waits for the coordinator. A marker that arrives meanwhile cancels the verification.
"""

from __future__ import annotations

from dataclasses import dataclass

from abeyant.broker.log import Batch, Log
from abeyant.broker.log.errors import InvalidTransactionStateError, OutOfOrderSequenceError


@dataclass(eq=False)
class Verification:
    """A check with the coordinator, in progress or passed, that a producer's transaction is open. Equal by identity."""

    producer_id: int
    epoch: int
    first_sequence: int
    bumps: bool
    """Whether the producer's epoch grows with every transaction, so that each transaction begins at sequence 0."""


class Verifications:
    """The verifications of one partition, by producer id. Only the partition's leader has any."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._by_producer: dict[int, Verification] = {}

    def needed(self, producer_id: int, epoch: int, sequence: int, *, bumps: bool) -> Verification | None:
        """Return the verification that a batch needs before it is appended. Create it if there is none.

        Return None if the batch's transaction is open in this log.
        """
        if self._log.producers.in_transaction(producer_id, epoch):
            return None
        verification = self._by_producer.get(producer_id)
        if verification is None or verification.epoch != epoch:
            verification = self._by_producer[producer_id] = Verification(producer_id, epoch, sequence, bumps)
        verification.first_sequence = min(verification.first_sequence, sequence)
        return verification

    def check(self, batch: Batch, verification: Verification | None) -> None:
        """Check that a client's transactional batch continues an open transaction, or begins a verified one.

        Raises InvalidTransactionStateError, OutOfOrderSequenceError.
        """
        producer_id = batch.producer_id
        if not batch.is_transactional or self._log.producers.in_transaction(producer_id, batch.producer_epoch):
            return
        if verification is None or not self.holds(verification):
            raise InvalidTransactionStateError("Record was not part of an ongoing transaction")
        sequence = batch.base_sequence
        if verification.bumps and sequence and self._log.producers.get(producer_id) is None:
            raise OutOfOrderSequenceError(
                f"Invalid sequence number for producer {producer_id}: {sequence} (incoming seq. number). Expected"
                " sequence 0 for transactions v2 idempotent producer with no existing state."
            )
        if sequence > verification.first_sequence:
            raise OutOfOrderSequenceError(
                f"Out of order sequence number for producer {producer_id}: {sequence} (incoming seq. number),"
                f" {verification.first_sequence} (earliest seen sequence)"
            )

    def holds(self, verification: Verification) -> bool:
        """Return whether the verification is still valid, neither cancelled nor replaced."""
        return self._by_producer.get(verification.producer_id) is verification

    def forget(self, producer_id: int) -> None:
        """Forget a producer's verification, once the transaction has begun in this log or has ended."""
        self._by_producer.pop(producer_id, None)

    def clear(self) -> None:
        """Forget all verifications. Call when this replica no longer leads."""
        self._by_producer.clear()
