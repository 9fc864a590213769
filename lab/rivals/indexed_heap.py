"""The heap in which each task knows its position, so that stopping is O(log n).

Source: `java.util.concurrent.ScheduledThreadPoolExecutor.DelayedWorkQueue` (`heapIndex`); libuv's timers do the same
with pointers. This is the heap that authors mean by "insert and delete are O(log n)".
"""

from __future__ import annotations

from array import array

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.slab import grown
from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

_FIRST_ROOM = 64


def precision() -> Precision:
    """Return the promise of a heap: tasks are exact, since a heap has no ticks."""
    return Precision(lambda delay: 0, apart=1, words="exact")


class IndexedHeap(Rival):
    """A timer queue on a heap in which tasks know their positions. Start, stop and expire O(log n)."""

    __slots__ = ("_deadline", "_place", "_size", "_slot")

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self._size = 0
        self._deadline = array("q", bytes(8 * _FIRST_ROOM))  # by place in the heap
        self._slot = array("i", bytes(4 * _FIRST_ROOM))
        self._place = array("i", bytes(4 * _FIRST_ROOM))  # by slot; -1 when not in the heap

    def _file(self, slot: int, deadline: int) -> None:
        self._make_room(slot)
        self._size += 1
        self._rise(self._size - 1, deadline, slot)

    def _forget(self, slot: int, handle: int) -> None:
        if self._place[slot] >= 0:
            self._delete(self._place[slot])

    def _upcoming(self) -> int:
        return self._deadline[0]

    def _collect(self) -> None:
        while self._size and self._deadline[0] <= self._now:
            slot = self._slot[0]
            self._delete(0)
            self._slab.push_back(self._due, slot)

    def _delete(self, place: int) -> None:
        self._place[self._slot[place]] = -1
        self._size -= 1
        last = self._size
        if place == last:
            return
        deadline = self._deadline[last]
        slot = self._slot[last]
        if place > 0 and deadline < self._deadline[(place - 1) >> 1]:
            self._rise(place, deadline, slot)
        else:
            self._sink(place, deadline, slot)

    def _rise(self, place: int, deadline: int, slot: int) -> None:
        while place > 0:
            parent = (place - 1) >> 1
            if self._deadline[parent] <= deadline:
                break
            self._put(place, self._deadline[parent], self._slot[parent])
            place = parent
        self._put(place, deadline, slot)

    def _sink(self, place: int, deadline: int, slot: int) -> None:
        while True:
            child = 2 * place + 1
            if child >= self._size:
                break
            if child + 1 < self._size and self._deadline[child + 1] < self._deadline[child]:
                child += 1
            if deadline <= self._deadline[child]:
                break
            self._put(place, self._deadline[child], self._slot[child])
            place = child
        self._put(place, deadline, slot)

    def _put(self, place: int, deadline: int, slot: int) -> None:
        self._deadline[place] = deadline
        self._slot[place] = slot
        self._place[slot] = place

    def _make_room(self, slot: int) -> None:
        """Grow the arrays until they have room for `slot`. Slots are taken from the lowest, so the heap fits, too."""
        if slot < len(self._place):
            return
        room = 2 * len(self._place)
        while room <= slot:
            room *= 2
        paused = pause_collection()
        try:
            self._deadline = grown(self._deadline, "q", room)
            self._slot = grown(self._slot, "i", room)
            self._place = grown(self._place, "i", room)
        finally:
            resume_collection(paused)

    def _filed(self) -> list[int]:
        for place in range(self._size):
            assert self._deadline[(place - 1) >> 1 if place else 0] <= self._deadline[place], "it is a heap"
            assert self._place[self._slot[place]] == place, "every task knows its place"
            assert self._slab.deadline[self._slot[place]] == self._deadline[place]
        return [self._slot[place] for place in range(self._size)]
