"""A DeleteRecords: waits until every replica's log start has moved (K6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


class Deleted:
    """One partition of it."""

    __slots__ = ("error", "low_watermark", "partition", "pending", "required")

    def __init__(self, partition: Partition, required: int) -> None:
        """`required`: where the logs are to start."""
        self.partition = partition
        self.required = required
        self.pending = True
        self.low_watermark = -1
        self.error = ErrorCode.request_timed_out  # what it is, should the time run out

    def look(self) -> bool:
        """Whether it still waits."""
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
    """In the DeleteRecords purgatory, on its partitions."""

    __slots__ = ("_answer", "_waiting")

    kind = "DeleteRecords"

    def __init__(
        self, timeout: float, waiting: list[Deleted], client_id: str, since: float, answer: Callable[[], object]
    ) -> None:
        """`timeout` in seconds; `answer` is called once."""
        super().__init__(timeout, client_id, since)
        self._waiting = waiting
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Those of which a replica has records below the new start."""
        return ((deleted.partition.topic, deleted.partition.index) for deleted in self._waiting if deleted.pending)

    def try_complete(self) -> bool:
        """Complete when all partitions' low watermarks are there."""
        pending = False
        for deleted in self._waiting:
            if deleted.look():
                pending = True
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        """Answer: those that are pending still have timed out."""
        self._answer()
