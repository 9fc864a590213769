"""A program's list of its own effects, with the time of each entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex


class Ledger(list[Any]):
    """A list that records when each entry was first added. Like a database, it outlives a simulated program.

    `simulation.ledger()` makes one. Add entries with `append`, `extend` or `insert`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Create an empty ledger. `clock` returns the time in seconds."""
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
        """Return the time in seconds at which each entry was first added."""
        return dict(self._times)
