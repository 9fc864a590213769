"""The unsorted list: a new task is put anywhere, and every look at the clock looks at all of them.

Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 1.
"""

from __future__ import annotations

from lab.rivals.precision import Precision
from lab.rivals.rival import Rival

_FOREVER = (1 << 63) - 1


def precision() -> Precision:
    """Exact, for it looks at all; what has come due at one look comes out in the order of adding."""
    return Precision(lambda delay: 0, apart=None, words="exact; in no order")


class UnsortedList(Rival):
    """Start and stop O(1); a look at the clock, and at what comes next, O(n)."""

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
