"""Kafka's old purgatory, from before 0.9: a delay queue of requests, and a reaper that scans for ended requests.

Source: Apache Kafka 0.8 `kafka.server.RequestPurgatory`, as described in "Apache Kafka, Purgatory, and Hierarchical
Timing Wheels" (Matsuda, 2015). A completed request stays in the delay queue and on its watch lists until a check or a
scan finds it. After every request that it expires, and every 200 ms, the reaper checks whether the lists or the queue
hold as many requests as the purge interval, pending and completed together; if so, it scans all of them.

(Kafka removed each ended request from the queue by another search, O(n) per request; this code sweeps once.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abeyant.pipeline.purging.reaped import PURGE_INTERVAL, Reaped
from abeyant.purgatory.operation import PENDING, DelayedOperation
from lab.rivals.delay_queue import DelayQueue

_PENDING = PENDING  # a C constant when compiled


class OldPurgatory(Reaped):
    """Kafka's purgatory before 0.9, on a delay queue. The methods are those of `Reaped`."""

    __slots__ = ("_queue",)

    def __init__(self, clock: Callable[[], int], purge_interval: int = PURGE_INTERVAL) -> None:
        super().__init__(clock, purge_interval)
        self._queue = DelayQueue(clock())

    def next_expiration(self) -> int | None:
        """Return the earliest deadline in the queue (ns), even if its request has ended; None if the queue is empty."""
        self._enter()
        try:
            return self._queue.next_expiration()
        finally:
            self._leave()

    def turn(self, now: int) -> int:
        """Expire the first due request that is pending; then scan lists and queue that reach the purge interval."""
        expired = 0
        while not expired:
            self._enter()
            try:
                due: list[Any] = self._queue.advance(now, 1)
            finally:
                self._leave()
            if not due:
                break
            expired += self._expire(due.pop())
        if self._watched >= self._interval:
            self._purge_lists()
        if len(self._queue) >= self._interval:
            self._purge_queue()
        return expired

    def _start(self, operation: DelayedOperation, deadline: int) -> None:
        self._enter()
        try:
            if operation._dop_state == _PENDING:
                self._queue.add(deadline, operation)
        finally:
            self._leave()
        self._started(deadline)

    def _timer_size(self) -> int:
        return len(self._queue)

    def _purge_queue(self) -> None:
        """Remove ended operations from the queue. O(n)."""
        gone: list[Any] = []  # let go of outside the lock
        self._purges += 1
        self._enter()
        try:
            queue = self._queue
            heap = queue._heap
            slab = queue._slab
            self._visited += heap.size
            kept = 0
            for position in range(heap.size):
                slot = slab.find(heap.handle[position])
                operation: Any = slab.items[slot]
                if operation._dop_state == _PENDING:
                    heap.deadline[kept] = heap.deadline[position]
                    heap.handle[kept] = heap.handle[position]
                    kept += 1
                else:
                    gone.append(slab.release(slot))
                    queue._pending -= 1
            heap.size = kept
            heap.heapify()
        finally:
            self._leave()
