"""The events of all keys, in piles by place; each is reduced to staircases as it grows, and asked in the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np

from abeyant.kernels.dealing import deal
from abeyant.kernels.resolve import NEVER, Staircases
from abeyant.tables.keys import Integers, Scratch

__all__ = ["Asked", "Piles"]

_PILES: Final = 1 << 10  # so many that the steps of one mostly fit the second-level cache
_LEAST: Final = 1 << 15  # rows that a pile gathers, at least, before it is reduced: 1 MB


class _Pile:
    """Rows (place, identity, progress, at) of some keys: steps of what was reduced, and what came since."""

    __slots__ = ("_lock", "_rows", "_scratch", "_since", "_steps", "staircases")

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
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

    @property
    def has_rows(self) -> bool:
        """Whether any rows ever came."""
        return bool(self._rows)

    def finish(self) -> None:
        """Reduce what came since, if anything did."""
        with self._lock:
            if self._since:
                self._reduce()

    def _reduce(self) -> None:
        rows = self._scratch("pile", 4 * sum(map(len, self._rows))).reshape(-1, 4)
        np.concatenate(self._rows, out=rows)
        self._rows = []
        self.staircases = Staircases(rows.ravel().data)
        self._steps, self._since = len(self.staircases), 0
        self._rows = [np.frombuffer(self.staircases.steps, np.int64).reshape(-1, 4)]


class Asked:
    """Watches to be looked up, dealt out to piles as events are: rows of place, identity, required, number."""

    __slots__ = ("_ends", "rows")

    def __init__(self, rows: Integers, ends: list[int]) -> None:
        self.rows = rows
        self._ends = ends

    def of(self, pile: int) -> Integers:
        """Return the rows of a pile."""
        return self.rows[self._ends[pile - 1] if pile else 0 : self._ends[pile]]

    def reached(self, starts: Integers, deadlines: Integers, deadline: Literal["inclusive", "exclusive"]) -> Integers:
        """Return when each condition first held in its time, or NEVER, once all piles have been asked."""
        first = np.empty(len(self.rows), np.int64)
        first[self.rows[:, 3]] = self.rows[:, 2]
        held = first <= starts
        in_time = held | (first < deadlines if deadline == "exclusive" else first <= deadlines)
        return np.where(in_time, np.where(held, starts, first), NEVER)


class Piles:
    """All piles. Any thread may `add`; `finish` comes after all of them, and before `reach`."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._piles = [_Pile(self._scratch) for _ in range(_PILES)]

    def add(self, places: Integers, identities: Integers, progress: Integers, at: Integers) -> None:
        """Deal out events."""
        rows, ends = self._dealt(places, identities, progress, at)
        begin = 0
        for pile, end in zip(self._piles, ends, strict=True):
            if end > begin:
                pile.add(rows[begin:end])
            begin = end

    def finish(self, each: Callable[[Callable[[_Pile], None], Iterable[_Pile]], Any]) -> None:
        """Reduce what is left; `each` applies a function to all piles, in several threads or not."""
        each(_Pile.finish, [pile for pile in self._piles if pile.has_rows])

    def asked(self, places: Integers, identities: Integers, required: Integers) -> Asked:
        """Deal out watches."""
        return Asked(*self._dealt(places, identities, required, np.arange(len(places))))

    def reach(self, asked: Sequence[Asked], each: Callable[[Callable[[int], None], Iterable[int]], Any]) -> None:
        """Look all watches up, a pile after the other, for its steps then stay in the cache; `each` as in `finish`."""

        def reach(number: int) -> None:
            staircases = self._piles[number].staircases
            for some in asked:
                rows = some.of(number)
                if staircases:
                    staircases.reach(rows.ravel().data)
                else:
                    rows[:, 2] = NEVER

        each(reach, range(len(self._piles)))

    def _dealt(
        self, places: Integers, identities: Integers, thirds: Integers, fourths: Integers
    ) -> tuple[Integers, list[int]]:
        """Return rows of these four, pile after pile, and where each pile ends."""
        rows, ends = np.empty((len(places), 4), np.int64), np.empty(len(self._piles), np.int64)
        deal(places.data, identities.data, thirds.data, fourths.data, ends.data, rows.ravel().data)
        return rows, ends.tolist()
