"""The operation behind a consumer's Fetch: it waits for `min.bytes` over all partitions, or an error (K3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


class Awaited:
    """One partition of a fetch that waits: its offset, and how many bytes are available from there."""

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

    def poll(self) -> bool:
        """Count the bytes that were added. Return False where the fetch has to end now, since reading will fail."""
        partition = self.partition
        if partition.leads is not self._leads or partition.state.leader_epoch != self._leader_epoch:
            return False
        end = partition.last_stable_offset if self.committed else partition.high_watermark
        if end != self._counted_to:
            if end < self._offset or self._offset < partition.log.start_offset:
                return False  # truncated, or deleted up to beyond the offset
            self.bytes = min(partition.log.bytes_between(self._offset, end), self._max_bytes)
            self._counted_to = end
        return self._offset >= partition.log.start_offset


class DelayedFetch(BrokerOperation):
    """Waits in the Fetch purgatory, keyed by its partitions."""

    __slots__ = ("_answer", "_awaited", "_min_bytes")

    kind = "Fetch"

    def __init__(
        self,
        timeout: float,
        min_bytes: int,
        awaited: list[Awaited],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait for at most `timeout` seconds; `answer` is called once, and reads the records."""
        super().__init__(timeout, client_id, since)
        self._min_bytes = min_bytes
        self._awaited = awaited
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return all partitions of the fetch."""
        return ((awaited.partition.topic, awaited.partition.index) for awaited in self._awaited)

    def try_complete(self) -> bool:
        """Complete when there are `min_bytes`. Only partitions that have grown are counted. Kafka: `DelayedFetch`."""
        total = 0
        for awaited in self._awaited:
            if not awaited.poll():
                return self.force_complete()
            total += awaited.bytes
        return total >= self._min_bytes and self.force_complete()

    def on_complete(self) -> None:
        """Read, and answer."""
        self._answer()
