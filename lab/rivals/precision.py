"""What a design promises about time, so that each can be held to its own word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abeyant.engine import MAX_TIME


@dataclass(frozen=True)
class Precision:
    """A design's promise, for a driver that calls `advance` at every `next_expiration`. Times are in units.

    No design here may be early. A deadline that is past when it is added counts as one at that moment.
    """

    at_most: Callable[[int], int]
    """How late a task may come out at most, given how far ahead its deadline was when it was added."""
    apart: int | None
    """Of two tasks due, the one with the earlier deadline comes first if these are so far apart; None: in any order."""
    words: str
    """The same in a few words, for a reader."""
    reach: int = MAX_TIME
    """The longest delay that it takes; beyond it `add` raises OverflowError."""
    polls: bool = False
    """Whether it has to look at every tick while anything is pending, as it does not know what comes next."""
