"""The heap with lazy deletion: a stop only marks the task; a compaction removes marked tasks when most are marked.

Source: CPython's `asyncio.base_events`: a cancelled handle stays in the heap until it is due. When more than 100
handles are cancelled, and more than half of all, the next turn of the loop rebuilds the heap. So a stop is O(1), and
now and then a turn is O(n). Here the mark is the engine's handle itself, which becomes stale when its task ends.
"""

from __future__ import annotations

from lab.rivals.heap import Heap
from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

_FEW = 100  # asyncio: _MIN_SCHEDULED_TIMER_HANDLES; its _MIN_CANCELLED_TIMER_HANDLES_FRACTION is a half


def precision() -> Precision:
    """Return the promise of a heap: tasks are exact, since a heap has no ticks."""
    return Precision(lambda delay: 0, apart=1, words="exact")


class LazyHeap(Rival):
    """A timer queue on a heap with lazy deletion.

    Start O(log n), stop O(1), expire O(log n); a turn is O(n) after many stops.
    """

    __slots__ = ("_heap", "_stale")

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self._heap = Heap()
        self._stale = 0  # handles in the heap whose task has been stopped

    def _file(self, slot: int, deadline: int) -> None:
        self._heap.push(deadline, self._slab.handle(slot))

    def _forget(self, slot: int, handle: int) -> None:
        if self._slab.first(slot) == slot:  # on no list, so in the heap
            self._stale += 1

    def _upcoming(self) -> int:
        self._drop_stale()
        return self._heap.deadline[0]

    def _collect(self) -> None:
        if self._stale > _FEW and 2 * self._stale > self._heap.size:
            self._compact()
        heap = self._heap
        self._drop_stale()
        while heap.size and heap.deadline[0] <= self._now:
            self._slab.push_back(self._due, self._slab.find(heap.handle[0]))
            heap.delete(0)
            self._drop_stale()

    def _drop_stale(self) -> None:
        """Remove stopped tasks that have come to the front of the heap."""
        while self._heap.size and self._slab.find(self._heap.handle[0]) < 0:
            self._heap.delete(0)
            self._stale -= 1

    def _compact(self) -> None:
        heap = self._heap
        kept = 0
        for position in range(heap.size):
            if self._slab.find(heap.handle[position]) >= 0:
                heap.deadline[kept] = heap.deadline[position]
                heap.handle[kept] = heap.handle[position]
                kept += 1
        heap.size = kept
        heap.heapify()
        self._stale = 0

    def _filed(self) -> list[int]:
        slots = [self._slab.find(handle) for _, handle in self._heap.entries()]
        assert slots.count(-1) == self._stale, "the stale ones are counted"
        return [slot for slot in slots if slot >= 0]
