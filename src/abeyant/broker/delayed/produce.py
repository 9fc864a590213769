"""Delay the response to a produce with acks=all until the high watermarks reach its records (K2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import PartitionsOperation
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.replica.ports import Broker


class PendingAck:
    """One partition of a produce: the offset that the high watermark must reach, and the result."""

    __slots__ = ("error", "leader_epoch", "partition", "pending", "required")

    def __init__(self, partition: Partition, required: int) -> None:
        """Wait for a high watermark of `required`, the offset after the last record."""
        self.partition = partition
        self.leader_epoch = partition.state.leader_epoch
        self.required = required
        self.pending = True
        self.error = ErrorCode.request_timed_out  # the result if the operation expires

    def poll(self) -> bool:
        """Update the result. Return whether the partition is still pending."""
        if self.pending:
            partition = self.partition
            if not partition.leads or partition.state.leader_epoch != self.leader_epoch:
                # Another broker leads now or led in between, so the records may be lost.
                self._settle(ErrorCode.not_leader_or_follower)
            elif partition.high_watermark >= self.required:
                enough = len(partition.state.isr) >= partition.min_isr
                self._settle(ErrorCode.none if enough else ErrorCode.not_enough_replicas_after_append)
        return self.pending

    def _settle(self, error: ErrorCode) -> None:
        self.pending = False
        self.error = error


class DelayedProduce(PartitionsOperation):
    """A produce with acks=all, in the Produce purgatory. Kafka: `DelayedProduce`."""

    __slots__ = ()

    kind = "Produce"


def wait_for_acks(
    broker: Broker,
    acks: Sequence[PendingAck],
    timeout: float,
    client_id: str,
    since: float,
    answer: Callable[[], object],
) -> None:
    """Call `answer` once all `acks` have a result, or after `timeout` seconds. Without `acks`, call it at once."""
    if not acks:
        answer()
        return
    operation = DelayedProduce(timeout, acks, client_id, since, answer)
    broker.produce_purgatory.try_complete_else_watch(operation, [ack.partition for ack in acks])
