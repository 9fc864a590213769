"""The unsorted list: a new task is put at the end, and every advance of the clock visits all tasks.

Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 1.
"""

from __future__ import annotations

from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

_FOREVER = (1 << 63) - 1


def precision() -> Precision:
    """Return the promise of an unsorted list: exact; what is due at one advance comes out in the order of adding."""
    return Precision(lambda delay: 0, apart=None, words="exact; in no order")


class UnsortedList(Rival):
    """A timer queue on an unsorted list. Start and stop O(1); `advance` and `next_expiration` O(n)."""

    __slots__ = ("_list",)

    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self._list = self._slab.reserve(1)

    def _file(self, slot: int, deadline: int) -> None:
        self._slab.push_back(self._list, slot)

    def _upcoming(self) -> int:
        slab = self._slab
        first = _FOREVER
        slot = slab.first(self._list)
        while slot != self._list:
            if slab.deadline[slot] < first:
                first = slab.deadline[slot]
            slot = slab.first(slot)
        return first

    def _collect(self) -> None:
        slab = self._slab
        slot = slab.first(self._list)
        while slot != self._list:
            after = slab.first(slot)
            if slab.deadline[slot] <= self._now:
                slab.unlink(slot)
                slab.push_back(self._due, slot)
            slot = after

    def _filed(self) -> list[int]:
        return self._slab.members(self._list)
