"""An acks=all produce: waits until its partitions' high watermarks have reached what it appended (K2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


class PendingAck:
    """One partition of a produce: what was appended, and what has come of it."""

    __slots__ = ("error", "leader_epoch", "partition", "pending", "required")

    def __init__(self, partition: Partition, required: int) -> None:
        """`required`: where the high watermark has to be, the offset after the last record."""
        self.partition = partition
        self.leader_epoch = partition.state.leader_epoch
        self.required = required
        self.pending = True
        self.error = ErrorCode.request_timed_out  # what it is, should the time run out

    def poll(self) -> bool:
        """Whether it still waits."""
        if self.pending:
            partition = self.partition
            if not partition.leads or partition.state.leader_epoch != self.leader_epoch:
                # Somebody else leads now, or did meanwhile: what was appended may be gone.
                self._settle(ErrorCode.not_leader_or_follower)
            elif partition.high_watermark >= self.required:
                enough = len(partition.state.isr) >= partition.min_isr
                self._settle(ErrorCode.none if enough else ErrorCode.not_enough_replicas_after_append)
        return self.pending

    def _settle(self, error: ErrorCode) -> None:
        self.pending = False
        self.error = error


class DelayedProduce(BrokerOperation):
    """In the Produce purgatory, on its partitions."""

    __slots__ = ("_answer", "_waiting")

    kind = "Produce"

    def __init__(
        self, timeout: float, waiting: list[PendingAck], client_id: str, since: float, answer: Callable[[], object]
    ) -> None:
        """`timeout` in seconds; `answer` is called once, when every one of `waiting` has its error."""
        super().__init__(timeout, client_id, since)
        self._waiting = waiting
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Those that have not reached every in-sync replica."""
        return ((acked.partition.topic, acked.partition.index) for acked in self._waiting if acked.pending)

    def try_complete(self) -> bool:
        """Complete when none of its partitions is pending. Kafka: `DelayedProduce.tryComplete`."""
        pending = False
        for acked in self._waiting:
            if acked.poll():
                pending = True
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Answer: those that are pending still have timed out."""
        self._answer()
