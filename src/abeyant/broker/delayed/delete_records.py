"""The operation behind DeleteRecords: it waits until the log start of every replica has moved (K6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


class Deleted:
    """One partition of the request, and its result."""

    __slots__ = ("error", "low_watermark", "partition", "pending", "required")

    def __init__(self, partition: Partition, required: int) -> None:
        """Wait until the partition's logs start at `required` or later."""
        self.partition = partition
        self.required = required
        self.pending = True
        self.low_watermark = -1
        self.error = ErrorCode.request_timed_out  # the result if the operation expires

    def poll(self) -> bool:
        """Update the result; return whether the partition is still pending."""
        if self.pending:
            if not self.partition.leads:
                self.pending = False
                self.error = ErrorCode.not_leader_or_follower
            else:
                self.low_watermark = self.partition.low_watermark
                if self.low_watermark >= self.required:
                    self.pending = False
                    self.error = ErrorCode.none
        return self.pending


class DelayedDeleteRecords(BrokerOperation):
    """Waits in the DeleteRecords purgatory, keyed by its partitions."""

    __slots__ = ("_answer", "_waiting")

    kind = "DeleteRecords"

    def __init__(
        self, timeout: float, waiting: list[Deleted], client_id: str, since: float, answer: Callable[[], object]
    ) -> None:
        """Wait for at most `timeout` seconds; `answer` is called once."""
        super().__init__(timeout, client_id, since)
        self._waiting = waiting
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions of which a replica still has records below the new start."""
        return ((deleted.partition.topic, deleted.partition.index) for deleted in self._waiting if deleted.pending)

    def try_complete(self) -> bool:
        """Complete when the low watermark of every partition has reached the new start."""
        pending = False
        for deleted in self._waiting:
            if deleted.poll():
                pending = True
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Answer; partitions that are still pending have timed out."""
        self._answer()
