"""The sorted list: a new task is inserted by a search from the rear; the first task is due next.

Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 2. They also remark that the
search may start from the rear; with one time-out for all tasks it then costs nothing.
"""

from __future__ import annotations

from lab.rivals.precision import Precision
from lab.rivals.rival import Rival


def precision() -> Precision:
    """Return the promise of a sorted list: tasks are exact."""
    return Precision(lambda delay: 0, apart=1, words="exact")


class SortedList(Rival):
    """A timer queue on a sorted list. Start O(n), stop and expire O(1)."""

    __slots__ = ("_list",)

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self._list = self._slab.reserve(1)

    def _file(self, slot: int, deadline: int) -> None:
        slab = self._slab
        before = slab.last(self._list)
        while before != self._list and slab.deadline[before] > deadline:
            before = slab.last(before)
        slab.push_front(before, slot)

    def _upcoming(self) -> int:
        return self._slab.deadline[self._slab.first(self._list)]

    def _collect(self) -> None:
        slab = self._slab
        slot = slab.first(self._list)
        while slot != self._list and slab.deadline[slot] <= self._now:
            slab.unlink(slot)
            slab.push_back(self._due, slot)
            slot = slab.first(self._list)

    def _filed(self) -> list[int]:
        slots = self._slab.members(self._list)
        deadlines = [self._slab.deadline[slot] for slot in slots]
        assert deadlines == sorted(deadlines), "the list is sorted"
        return slots
