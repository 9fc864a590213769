"""A binary heap of deadlines, each with a handle, in two integer arrays.

Source: Williams, "Algorithm 232: Heapsort" (1964); heapify by Floyd, "Algorithm 245: Treesort 3" (1964). A hole moves
through the heap, so that no entries are swapped. No object is made per entry. Equal deadlines come out in any order.
"""

from __future__ import annotations

from array import array

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.slab import grown

_FIRST_ROOM = 64


class Heap:
    """A binary heap of handles by deadline, with the earliest first."""

    __slots__ = ("deadline", "handle", "size")

    def __init__(self) -> None:
        self.size = 0
        self.deadline = array("q", bytes(8 * _FIRST_ROOM))
        self.handle = array("q", bytes(8 * _FIRST_ROOM))

    def push(self, deadline: int, handle: int) -> None:
        """Add a handle. O(log n) at worst, if the new deadline is the earliest."""
        if self.size == len(self.deadline):
            self._grow()
        self.size += 1
        self._rise(self.size - 1, deadline, handle)

    def delete(self, position: int) -> None:
        """Remove the entry at `position`; 0 is the earliest. O(log n)."""
        self.size -= 1
        last = self.size
        if position == last:
            return
        deadline = self.deadline[last]
        handle = self.handle[last]
        if position > 0 and deadline < self.deadline[(position - 1) >> 1]:
            self._rise(position, deadline, handle)
        else:
            self._sink(position, deadline, handle)

    def search(self, handle: int) -> int:
        """Return the position of a handle, or -1 if the heap does not have it. O(n): a heap is no index."""
        for position in range(self.size):
            if self.handle[position] == handle:
                return position
        return -1

    def heapify(self) -> None:
        """Reorder entries that are in any order into a heap. O(n)."""
        for position in range((self.size >> 1) - 1, -1, -1):
            self._sink(position, self.deadline[position], self.handle[position])

    def _rise(self, position: int, deadline: int, handle: int) -> None:
        while position > 0:
            parent = (position - 1) >> 1
            if self.deadline[parent] <= deadline:
                break
            self.deadline[position] = self.deadline[parent]
            self.handle[position] = self.handle[parent]
            position = parent
        self.deadline[position] = deadline
        self.handle[position] = handle

    def _sink(self, position: int, deadline: int, handle: int) -> None:
        while True:
            child = 2 * position + 1
            if child >= self.size:
                break
            if child + 1 < self.size and self.deadline[child + 1] < self.deadline[child]:
                child += 1
            if deadline <= self.deadline[child]:
                break
            self.deadline[position] = self.deadline[child]
            self.handle[position] = self.handle[child]
            position = child
        self.deadline[position] = deadline
        self.handle[position] = handle

    def _grow(self) -> None:
        room = 2 * len(self.deadline)
        paused = pause_collection()
        try:
            self.deadline = grown(self.deadline, "q", room)
            self.handle = grown(self.handle, "q", room)
        finally:
            resume_collection(paused)

    def entries(self) -> list[tuple[int, int]]:
        """Return every (deadline, handle) in the arrays' order; assert that they form a heap. O(n)."""
        for child in range(1, self.size):
            assert self.deadline[(child - 1) >> 1] <= self.deadline[child], f"entry {child} precedes its parent"
        return [(self.deadline[i], self.handle[i]) for i in range(self.size)]
