"""The events of all keys, in piles by place; each is reduced to staircases as it grows, and asked in the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import numpy as np

from abeyance.engine.resolve import NEVER, Staircases
from abeyance.tables.keys import Integers

__all__ = ["Piles"]

_BITS: Final = 8
_LEAST: Final = 1 << 16  # rows that a pile gathers, at least, before it is reduced


class _Pile:
    """Rows (place, identity, progress, at) of some keys: steps of what was reduced, and what came since."""

    __slots__ = ("_lock", "_rows", "_since", "_steps", "staircases")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the rows; reducing them is done under it, and waits for nothing
        self._rows: list[Integers] = []
        self._since = self._steps = 0
        self.staircases: Staircases | None = None

    def add(self, rows: Integers) -> None:
        """Take rows. They are reduced once they are four times as many as the steps: O(log n) times each."""
        with self._lock:
            self._rows.append(rows)
            self._since += len(rows)
            if self._since >= max(4 * self._steps, _LEAST):
                self._reduce()

    def finish(self) -> None:
        """Reduce what came since, if anything did."""
        with self._lock:
            if self._since:
                self._reduce()

    def _reduce(self) -> None:
        rows = np.concatenate(self._rows)
        self._rows = []
        self.staircases = Staircases(rows.ravel().data)
        self._steps, self._since = len(self.staircases), 0
        self._rows = [np.frombuffer(self.staircases.steps, np.int64).reshape(-1, 4)]


class Piles:
    """All piles. Any thread may `add`; `finish` comes after all of them, and before `first_reached`."""

    def __init__(self) -> None:
        self._piles = [_Pile() for _ in range(1 << _BITS)]

    def add(self, rows: Integers) -> None:
        """Deal out rows (place, identity, progress, at), one an event."""
        order, ends = _dealt(rows[:, 0])
        sorted_rows = rows[order]
        begin = 0
        for pile, end in zip(self._piles, ends, strict=True):
            if end > begin:
                pile.add(sorted_rows[begin:end])
            begin = end

    def finish(self, each: Callable[[Callable[[_Pile], None], Iterable[_Pile]], Any]) -> None:
        """Reduce what is left; `each` applies a function to all piles, in several threads or not."""
        each(_Pile.finish, self._piles)

    def first_reached(
        self,
        places: Integers,
        identities: Integers,
        required: Integers,
        starts: Integers,
        deadlines: Integers,
        deadline: Literal["inclusive", "exclusive"],
    ) -> Integers:
        """Return when each condition first held in its time, or NEVER. One value per watch in every column."""
        order, ends = _dealt(places)
        columns = [places, identities, required, starts, deadlines]
        columns = [column[order] for column in columns]
        found = np.full(len(order), NEVER)
        begin = 0
        for pile, end in zip(self._piles, ends, strict=True):
            if end > begin and pile.staircases:
                place, identity, level, start, limit, out = (column[begin:end].data for column in (*columns, found))
                pile.staircases.first_reached(place, identity, level, start, limit, out, deadline=deadline)
            begin = end
        reached = np.empty_like(found)
        reached[order] = found
        return reached


def _dealt(places: Integers) -> tuple[Integers, list[int]]:
    """Return the rows by pile, the uppermost bits of the place, and where each pile ends among them."""
    pile = (places.view(np.uint64) >> np.uint64(64 - _BITS)).astype(np.uint8)
    order = np.argsort(pile, kind="stable")  # of 8 bits: a radix sort
    return order, np.cumsum(np.bincount(pile, minlength=1 << _BITS)).tolist()
