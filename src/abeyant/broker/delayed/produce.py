"""The operation behind Produce with acks=all: it waits for its partitions' high watermarks (K2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


class PendingAck:
    """One partition of a produce: the offset that has to be replicated, and its result."""

    __slots__ = ("error", "leader_epoch", "partition", "pending", "required")

    def __init__(self, partition: Partition, required: int) -> None:
        """Wait until the high watermark is at `required`, the offset after the last record."""
        self.partition = partition
        self.leader_epoch = partition.state.leader_epoch
        self.required = required
        self.pending = True
        self.error = ErrorCode.request_timed_out  # the result if the operation expires

    def poll(self) -> bool:
        """Update the result; return whether the partition is still pending."""
        if self.pending:
            partition = self.partition
            if not partition.leads or partition.state.leader_epoch != self.leader_epoch:
                # Another broker leads now, or did meanwhile: the records may be gone.
                self._settle(ErrorCode.not_leader_or_follower)
            elif partition.high_watermark >= self.required:
                enough = len(partition.state.isr) >= partition.min_isr
                self._settle(ErrorCode.none if enough else ErrorCode.not_enough_replicas_after_append)
        return self.pending

    def _settle(self, error: ErrorCode) -> None:
        self.pending = False
        self.error = error


class DelayedProduce(BrokerOperation):
    """Waits in the Produce purgatory, keyed by its partitions."""

    __slots__ = ("_answer", "_waiting")

    kind = "Produce"

    def __init__(
        self, timeout: float, waiting: list[PendingAck], client_id: str, since: float, answer: Callable[[], object]
    ) -> None:
        """Wait for at most `timeout` seconds; `answer` is called once, when each of `waiting` has its result."""
        super().__init__(timeout, client_id, since)
        self._waiting = waiting
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions whose records have not reached every in-sync replica."""
        return ((acked.partition.topic, acked.partition.index) for acked in self._waiting if acked.pending)

    def try_complete(self) -> bool:
        """Complete when none of its partitions is pending. Kafka: `DelayedProduce.tryComplete`."""
        pending = False
        for acked in self._waiting:
            if acked.poll():
                pending = True
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Answer; partitions that are still pending have timed out."""
        self._answer()
