"""A broker's background work on its logs, at Kafka's times: retention, compaction, expiry of idle producers.

    task                              first run                     then every
    retention (`delete` only)         30 s after the start          log.retention.check.interval.ms
    cleaner: compaction, and          at the start                  log.cleaner.backoff.ms
      retention of `compact,delete`
    expiry of idle producers          one interval after the        producer.id.expiration.check.interval.ms
                                      log was opened

As in Kafka, a log with `compact,delete` loses no segments while the cleaner is off. A paused broker runs no task. The
coordinators delete old groups and offsets (groups/shard.py) and transactional ids (transactions/shard.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from abeyant.broker.log import LogError
from abeyant.broker.reconfiguration import CLEANER
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.purgatory.ports import Stoppable

_FIRST = 30.0  # seconds: Kafka's log.initial.task.delay.ms
_SHORTEST = 0.1  # seconds: Kafka allows 0, which would be a busy loop


class Housekeeping:
    """The background tasks of one broker. Use from the loop's thread only."""

    def __init__(self, broker: Broker) -> None:
        """Start the tasks."""
        settings = broker.cluster.settings
        self._broker = broker
        self._cleaner = self._cleaner_settings()
        self._tasks: dict[object, Stoppable] = {}
        self._turns: dict[str, Callable[[], None]] = {}
        self._producer_interval: float = settings["producer.id.expiration.check.interval.ms"] / 1000
        self._repeat("retention", self._retain, settings["log.retention.check.interval.ms"] / 1000, first=_FIRST)
        self._start_cleaner()

    def reconfigure(self) -> None:
        """Restart the cleaner if one of its settings changed, as Kafka does. The new cleaner runs at once."""
        now = self._cleaner_settings()
        if now != self._cleaner:
            self._cleaner = now
            self._start_cleaner()

    def _cleaner_settings(self) -> list[object]:
        return [self._broker.cluster.settings.value(name, self._broker.id) for name in CLEANER]

    def _start_cleaner(self) -> None:
        settings = self._broker.cluster.settings
        if settings["log.cleaner.enable"]:
            backoff = max(settings.value("log.cleaner.backoff.ms", self._broker.id) / 1000, _SHORTEST)
            self._repeat("cleaning", self._clean, backoff, first=0.0)

    def close(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def add(self, partition: Partition) -> None:
        """Expire a log's idle producers periodically, until `remove`."""
        self._tasks[partition] = self._broker.timer.call_later(self._producer_interval, self._expire, partition)

    def remove(self, partition: Partition) -> None:
        """Stop expiring a log's idle producers."""
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.cancel()

    def _repeat(self, name: str, do: Callable[[Partition, int], object], interval: float, *, first: float) -> None:
        def turn() -> None:
            if self._turns[name] is not turn:
                return  # replaced while this one waited in a paused broker's inbox
            for partition in list(self._broker.partitions.values()):
                self._do(name, do, partition)
            self._tasks[name] = self._broker.timer.call_later(interval, turn)

        turn.__qualname__ = f"Housekeeping: {name}"  # so the window shows it
        self._turns[name] = turn
        if name in self._tasks:
            self._tasks[name].cancel()
        self._tasks[name] = self._broker.timer.call_later(first, turn)

    def _do(self, name: str, do: Callable[[Partition, int], object], partition: Partition) -> None:
        try:
            do(partition, self._broker.now_ms())
        except LogError as error:
            logger("broker").error("broker %d: %s of %r: %s", self._broker.id, name, partition, error)
        except Exception:  # noqa: BLE001  a bug of ours must not stop the work on other partitions
            logger("broker").exception("broker %d: %s of %r failed", self._broker.id, name, partition)

    def _retain(self, partition: Partition, now_ms: int) -> None:
        if not partition.log.config.compact:
            self._delete_old(partition, now_ms)

    def _clean(self, partition: Partition, now_ms: int) -> None:
        if partition.log.config.compact:
            partition.log.compact(now_ms, partition.last_stable_offset)
            self._delete_old(partition, now_ms)

    def _expire(self, partition: Partition) -> None:
        self._do("expiry of producers", lambda one, now_ms: one.log.expire_producers(now_ms), partition)
        self.add(partition)

    def _delete_old(self, partition: Partition, now_ms: int) -> None:
        if partition.log.delete_old(now_ms, partition.high_watermark):
            partition.start_moved()
