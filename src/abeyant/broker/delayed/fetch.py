"""Delay a consumer's fetch until `min.bytes` are available over all of its partitions (K3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.log import LogError

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


class PendingFetch:
    """One partition of a pending fetch, with the fetch's offset and the number of bytes available from that offset."""

    __slots__ = ("_counted_to", "_leader_epoch", "_leads", "_max_bytes", "_offset", "bytes", "committed", "partition")

    def __init__(self, partition: Partition, offset: int, max_bytes: int, committed: bool) -> None:
        self.partition = partition
        self.committed = committed
        self.bytes = 0
        self._offset = offset
        self._max_bytes = max_bytes
        self._leader_epoch = partition.state.leader_epoch
        self._leads = partition.leads
        self._counted_to = offset

    @property
    def has_nothing(self) -> bool:
        """Return whether there is nothing new: the same leader epoch, and no readable record from the offset on."""
        partition = self.partition
        return (
            partition.leads is self._leads
            and partition.state.leader_epoch == self._leader_epoch
            and partition.log.start_offset <= self._offset >= partition.high_watermark
        )

    def poll(self) -> bool:
        """Update `bytes`. Return False if the fetch must complete now: the leader changed or the offset is gone."""
        partition = self.partition
        if partition.leads is not self._leads or partition.state.leader_epoch != self._leader_epoch:
            return False
        end = partition.last_stable_offset if self.committed else partition.high_watermark
        if end != self._counted_to:
            if end < self._offset or self._offset < partition.log.start_offset:
                return False  # the offset was truncated or deleted
            self.bytes = min(partition.log.bytes_between(self._offset, end), self._max_bytes)
            self._counted_to = end
        return self._offset >= partition.log.start_offset

    def read(self, most: int) -> bytes | None:
        """Return the records from the fetch's offset on: at most `most` bytes, but at least one batch.

        Return None if the whole request must be read again: the leader epoch has changed, the offset is outside of
        the readable log, the log has or had transactions, or reading the log fails.
        """
        partition = self.partition
        log = partition.log
        if (
            partition.leads is not self._leads
            or partition.state.leader_epoch != self._leader_epoch
            or not log.start_offset <= self._offset < partition.high_watermark
            or log.producers.has_transactions
        ):
            return None
        try:
            return log.read(self._offset, min(self._max_bytes, most), partition.high_watermark, min_one=True)
        except LogError:
            return None


class DelayedFetch(BrokerOperation):
    """A consumer's fetch in the Fetch purgatory, keyed by its partitions. Kafka: `DelayedFetch`."""

    __slots__ = ("_answer", "_min_bytes", "_pending")

    kind = "Fetch"

    def __init__(
        self,
        timeout: float,
        min_bytes: int,
        pending: list[PendingFetch],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait for `min_bytes`, at most `timeout` seconds. Then call `answer`, which reads the records."""
        super().__init__(timeout, client_id, since)
        self._min_bytes = min_bytes
        self._pending = pending
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return all partitions of the fetch."""
        return ((pending.partition.topic, pending.partition.index) for pending in self._pending)

    def try_complete(self) -> bool:
        """Complete when `min_bytes` are available or a `poll` fails. Only partitions that have grown are recounted."""
        total = 0
        for pending in self._pending:
            if not pending.poll():
                return self.force_complete()
            total += pending.bytes
        return total >= self._min_bytes and self.force_complete()

    def on_complete(self) -> None:
        """Read the records and send the response."""
        self._answer()
