"""Types of a measurement: its program (`Steps`), its sample, its result."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

# A row's program is a generator, so that one program drives rivals of every kind. It yields to give the driver a
# turn: None for one turn (an event loop: one iteration; a thread: nothing), a predicate for turns until it is true.
# `Rival.run` runs it (lab/peers/rival.py).
Steps: TypeAlias = Generator[Callable[[], bool] | None, None, T]

# Names of a sample's figures in the results, besides those of its `extra`.
ROUND: Final = "round"
OPERATIONS: Final = "operations"


@dataclass(frozen=True)
class Sample:
    """What one measurement gives: a figure per round, in the row's unit, and the row's extra figures."""

    rounds: list[float]
    operations: int  # in one round
    extra: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """The result of a row for one rival at one size."""

    rival: str
    row: str
    size: int
    rounds: list[float]
    operations: int
    extra: dict[str, list[float]]
    date: str  # date and time, UTC

    @property
    def key(self) -> tuple[str, str, int]:
        """Return the rival, row and size, which identify the measurement."""
        return self.rival, self.row, self.size

    @property
    def median(self) -> float:
        """Return the median of the rounds' figures."""
        return statistics.median(self.rounds)
