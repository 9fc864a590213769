"""The promise of a design on lateness and order; tests check each design against its own promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abeyant.engine import MAX_TIME


@dataclass(frozen=True)
class Precision:
    """A design's promise, for a driver that calls `advance` at every `next_expiration`. Times are in units.

    No design here may be early. A deadline that is past when its task is added counts as a deadline at that moment.
    """

    at_most: Callable[[int], int]
    """Return the maximum lateness of a task, given the delay with which it was added."""
    apart: int | None
    """Deadlines this far apart come out in order if both are due; None: due tasks come out in any order."""
    words: str
    """The promise in a few words, for a reader."""
    reach: int = MAX_TIME
    """The longest delay that the design takes; `add` raises OverflowError for a longer one."""
    polls: bool = False
    """Whether the driver has to wake at every tick while tasks are pending, as the design cannot tell which is next."""
