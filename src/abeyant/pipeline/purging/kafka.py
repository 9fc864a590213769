# cython: nonecheck=True
"""Kafka's purgatory as it is today: a timing wheel, and watch lists purged by an estimate.

Source: Apache Kafka `DelayedOperationPurgatory` and `SystemTimer` (since 0.9, KAFKA-1989).
A completed operation leaves the timer at once, in O(1), but stays on the watch lists of its other keys. The number of
such operations is not counted but estimated. E goes up by one for every operation watched. When E minus the number of
pending operations exceeds the purge interval, E is set to the number pending and all lists are purged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abeyant.engine.wheel import TimingWheel
from abeyant.pipeline.purging.reaped import PURGE_INTERVAL, Reaped
from abeyant.purgatory.operation import PENDING, DelayedOperation

TICK = 1_000_000  # ns: a millisecond, and 20 buckets, as in Kafka
WHEEL_SIZE = 20

_PENDING = PENDING  # a C constant when compiled


class KafkaPurgatory(Reaped):
    """Kafka's purgatory (see `Reaped`), on our own wheel with Kafka's tick and wheel size."""

    __slots__ = ("_estimate", "_wheel")

    def __init__(self, clock: Callable[[], int], purge_interval: int = PURGE_INTERVAL) -> None:
        super().__init__(clock, purge_interval)
        self._wheel = TimingWheel(TICK, WHEEL_SIZE, clock())
        self._estimate = 0

    def next_expiration(self) -> int | None:
        """Return the time at which the wheel's next bucket is due, in nanoseconds; None if nothing is pending."""
        self._enter()
        try:
            return self._wheel.next_expiration()
        finally:
            self._leave()

    def turn(self, now: int) -> int:
        """Expire due operations; purge if E minus the number pending exceeds the interval. Return how many expired."""
        self._enter()
        try:
            due: list[Any] = self._wheel.advance(now)
        finally:
            self._leave()
        expired = 0
        for operation in due:
            expired += self._expire(operation)
        if self._estimate - len(self._wheel) > self._interval:
            self._estimate = len(self._wheel)
            self._purge_lists()
        return expired

    def _joined(self) -> None:
        self._enter()
        self._estimate += 1
        self._leave()

    def _start(self, operation: DelayedOperation, deadline: int) -> None:
        self._enter()
        try:
            if operation._dop_state == _PENDING:
                handle: Any = self._wheel.add(deadline, operation)
                operation._dop_task = handle
        finally:
            self._leave()
        self._started(deadline)

    def _timer_size(self) -> int:
        return len(self._wheel)

    def _ended(self, operation: DelayedOperation) -> None:
        handle: Any = operation._dop_task
        if handle is not None:
            operation._dop_task = None
            self._wheel.remove(handle)
