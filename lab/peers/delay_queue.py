"""The delay queue that is usually written by hand: a heap in which cancelled entries are marked."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from lab.peers.rival import Handle, Rival, noop


class DelayQueue:
    """A delay queue: a heap of [deadline, number, callback, args], plain lists that `heapq` compares in C.

    Cancelling marks an entry. A marked entry is dropped when it is due. All marked entries are dropped when they are
    more than half of the heap, as in asyncio.
    """

    def __init__(self) -> None:
        self.heap: list[list[Any]] = []
        self._numbers = itertools.count()
        self._marked = 0

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> list[Any]:
        """Start a timer; its entry is its handle."""
        entry = [time.monotonic() + delay, next(self._numbers), callback, args]
        heapq.heappush(self.heap, entry)
        return entry

    def cancel(self, entry: list[Any]) -> None:
        """Stop a timer."""
        if entry[2] is not None:
            entry[2] = entry[3] = None
            self._marked += 1

    def next_deadline(self) -> float | None:
        """Return the first entry's deadline, even if it is cancelled; None if the queue is empty."""
        return self.heap[0][0] if self.heap else None

    def run_due(self) -> None:
        """Drop the cancelled entries if they are the majority; then run the callbacks that are due."""
        if self._marked > 100 and 2 * self._marked > len(self.heap):
            self.heap = [entry for entry in self.heap if entry[2] is not None]
            heapq.heapify(self.heap)
            self._marked = 0
        now = time.monotonic()
        while self.heap and self.heap[0][0] <= now:
            entry = heapq.heappop(self.heap)
            callback, args = entry[2], entry[3]
            if callback is None:
                self._marked -= 1
            else:
                entry[2] = entry[3] = None  # a late cancel finds it ended
                callback(*args)


class DelayQueueRival(Rival):
    """The rival that measures `DelayQueue`, on its caller's thread, without a lock."""

    forgets = False

    def __init__(self) -> None:
        self.queue = DelayQueue()
        self.call = self.queue.call_later

    def pair(self, delays: Sequence[float]) -> None:
        """As `Rival.pair`."""
        call, cancel = self.call, self.queue.cancel
        for delay in delays:
            cancel(call(delay, noop))

    def stop_all(self, handles: Sequence[Handle]) -> None:
        """As `Rival.stop_all`."""
        cancel = self.queue.cancel
        for handle in handles:
            cancel(handle)

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: float) -> None:
        """As `Rival.refresh_all`."""
        call, cancel = self.call, self.queue.cancel
        for index in order:
            cancel(handles[index])
            handles[index] = call(delay, noop)

    def ask_next(self, times: Sequence[int]) -> None:
        """As `Rival.ask_next`."""
        next_deadline = self.queue.next_deadline
        for _ in times:
            next_deadline()

    def turn(self) -> None:
        """Run the callbacks that are due."""
        self.queue.run_due()
