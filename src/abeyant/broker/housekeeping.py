"""What a broker does to its logs by itself: retention, compaction, forgetting of silent producers and old offsets.

All of it rides the one timer, at Kafka's intervals: nothing is looked at in between (K7). While the broker is paused it
does none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from abeyant.broker.log import LogError
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.purgatory.ports import Stoppable

_FIRST = 30.0  # seconds: Kafka's log.initial.task.delay.ms, before anything but compaction is done
_SHORTEST = 0.1  # seconds: Kafka allows a pause of none, which would be a loop


class Housekeeping:
    """One broker's. Use from the loop's thread only."""

    def __init__(self, broker: Broker) -> None:
        """Begin."""
        settings = broker.cluster.settings
        self._broker = broker
        self._tasks: dict[str, Stoppable] = {}
        self._repeat("retention", self._delete_old, settings["log.retention.check.interval.ms"] / 1000)
        if settings["log.cleaner.enable"]:
            backoff = max(settings["log.cleaner.backoff.ms"] / 1000, _SHORTEST)
            self._repeat("compaction", self._compact, backoff, first=backoff)
        self._repeat("producers", self._expire, settings["producer.id.expiration.check.interval.ms"] / 1000)
        self._repeat("offsets", self._forget_offsets, settings["offsets.retention.check.interval.ms"] / 1000)

    def close(self) -> None:
        """Do nothing any more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _repeat(
        self, name: str, do: Callable[[Partition, int], object], interval: float, first: float = _FIRST
    ) -> None:
        def turn() -> None:
            now_ms = self._broker.now_ms()
            for partition in list(self._broker.partitions.values()):
                try:
                    do(partition, now_ms)
                except LogError as error:
                    logger("broker").error("broker %d: %s of %r: %s", self._broker.id, name, partition, error)
                except Exception:  # noqa: BLE001  a bug of ours must not take others along, nor the next turns
                    logger("broker").exception("broker %d: %s of %r failed", self._broker.id, name, partition)
            self._tasks[name] = self._broker.timer.call_later(interval, turn)

        self._tasks[name] = self._broker.timer.call_later(first, turn)

    def _delete_old(self, partition: Partition, now_ms: int) -> None:
        if partition.log.delete_old(now_ms, partition.high_watermark):
            partition.start_moved()

    def _compact(self, partition: Partition, now_ms: int) -> None:
        partition.log.compact(now_ms, partition.last_stable_offset)

    def _forget_offsets(self, partition: Partition, now_ms: int) -> None:
        coordinator = self._broker.group_coordinator
        if partition.topic == coordinator.topic.name:
            shard = coordinator.shards.get(partition.index)
            if shard is not None and not shard.loading:
                shard.forget_old(now_ms)

    def _expire(self, partition: Partition, now_ms: int) -> None:
        partition.log.expire_producers(now_ms)
