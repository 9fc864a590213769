"""A program's list of what it has done, with the time of each entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex


class Ledger(list[Any]):
    """A list that notes when each entry was appended: what outlives a simulated program, as its database does.

    `simulation.ledger()` makes one. Use `append`, `extend` or `insert`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds."""
        super().__init__()
        self._clock = clock
        self._times: dict[Any, float] = {}

    def append(self, entry: Any) -> None:
        """Append an entry."""
        self._times.setdefault(entry, self._clock())
        super().append(entry)

    def extend(self, entries: Iterable[Any]) -> None:
        """Append entries."""
        for entry in entries:
            self.append(entry)

    def insert(self, index: SupportsIndex, entry: Any) -> None:
        """Insert an entry."""
        self._times.setdefault(entry, self._clock())
        super().insert(index, entry)

    def first_times(self) -> dict[Any, float]:
        """Return when each entry was made first, in seconds."""
        return dict(self._times)
