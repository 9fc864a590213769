"""The delay queue of tasks: a binary heap without random delete.

Source: `java.util.concurrent.DelayQueue`, which keeps a `PriorityQueue`; it drove Kafka's purgatory before 0.9. To stop
a task, the heap has to be searched for it: O(n). (Java's queue searches by `equals`, one object after another; this one
compares integers in an array, which is the same design at its best.)
"""

from __future__ import annotations

from lab.rivals.heap import Heap
from lab.rivals.precision import Precision
from lab.rivals.rival import Rival


def precision() -> Precision:
    """Return the promise of a heap: tasks are exact, since a heap has no ticks."""
    return Precision(lambda delay: 0, apart=1, words="exact")


class DelayQueue(Rival):
    """A timer queue on a binary heap without random delete. Start O(log n), stop O(n), expire O(log n)."""

    __slots__ = ("_heap",)

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self._heap = Heap()

    def _file(self, slot: int, deadline: int) -> None:
        self._heap.push(deadline, self._slab.handle(slot))

    def _forget(self, slot: int, handle: int) -> None:
        position = self._heap.search(handle)
        if position >= 0:
            self._heap.delete(position)

    def _upcoming(self) -> int:
        return self._heap.deadline[0]

    def _collect(self) -> None:
        heap = self._heap
        while heap.size and heap.deadline[0] <= self._now:
            self._slab.push_back(self._due, self._slab.find(heap.handle[0]))
            heap.delete(0)

    def _filed(self) -> list[int]:
        slots = [self._slab.find(handle) for _, handle in self._heap.entries()]
        assert -1 not in slots, "nothing that has ended is in the heap"
        return slots
