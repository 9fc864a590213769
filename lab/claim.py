"""Claims of the literature, and what a run of an experiment finds on each claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from lab.run import Run

__all__ = ["MATSUDA", "VARGHESE", "Claim", "Finding", "Verdict"]

Verdict = Literal["held", "held in part", "not held here", "inconclusive", "not decided"]

MATSUDA: Final = "Matsuda, “Apache Kafka, Purgatory, and Hierarchical Timing Wheels”, Confluent, 2015"
VARGHESE: Final = "Varghese and Lauck, “Hashed and Hierarchical Timing Wheels”, SOSP 1987"


class Finding(NamedTuple):
    """A run's verdict on a claim; `figure` is a sentence with the figures that decided it."""

    verdict: Verdict
    figure: str


class Claim(NamedTuple):
    """A published statement and its source. `judge` decides whether it holds, by the `rule` that the page shows."""

    text: str
    source: str
    judge: Callable[[Run], Finding]
    rule: str
