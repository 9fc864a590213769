"""What one process measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

# A row's program is a generator, so that one program drives rivals of every kind. It yields where a program would
# let its driver have a turn: None for one turn (an event loop: one iteration; a thread: nothing), a predicate for
# as many as it takes to become true. The rival runs it, see rivals/rival.py.
Steps: TypeAlias = Generator[Callable[[], bool] | None, None, T]

# What a sample's figures are called in the results, besides the names of its `extra`.
ROUND: Final = "round"
OPERATIONS: Final = "operations"


@dataclass(frozen=True)
class Sample:
    """A figure a round, in the row's unit, and whatever else the row has to tell."""

    rounds: list[float]
    operations: int  # in one round
    extra: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """A row's sample for one rival at one size."""

    rival: str
    row: str
    size: int
    rounds: list[float]
    operations: int
    extra: dict[str, list[float]]
    taken: str  # date and time, UTC

    @property
    def key(self) -> tuple[str, str, int]:
        """What it is a measurement of."""
        return self.rival, self.row, self.size

    @property
    def median(self) -> float:
        """The median round."""
        return statistics.median(self.rounds)
