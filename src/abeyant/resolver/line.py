"""What came for one key, and who waits there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from math import inf
from typing import Any, NamedTuple

from abeyant.resolver.words import Combine


class Arrived(NamedTuple):
    """The events of one key that came together."""

    progress: list[float]  # the greatest first
    total: float


class Line:
    """One key's state. Times are nanoseconds on the timer's clock."""

    __slots__ = (
        "_remembers", "at", "counted", "gauges", "here", "here_counted", "history", "key", "level", "users", "value",
    )  # fmt: skip

    def __init__(self, key: Hashable, remembers: bool) -> None:
        """`remembers` how it came to be what it is: memory then grows with the steps up to now."""
        self.key = key
        self.users = 0  # how many watches of pending operations are its
        self.gauges: dict[Any, None] = {}
        """The `Gauge` of each watch of pending operations, but for those whom one event serves."""
        self.level: float | None = None
        """The last progress, whatever is combined: a pause is a state."""
        self._remembers = remembers
        self.forget()

    def forget(self) -> None:
        """Be as if nothing had come; but what is paused stays so."""
        if not any(gauge.role == "pause" for gauge in self.gauges):
            self.level = None
        self.value: float | None = None
        """What all events come to."""
        self.counted = 0
        self.here: float | None = None
        """What the events of the instant `at` come to: those with `count="from_start"` of who starts then."""
        self.here_counted = 0
        self.at = -1
        # The last values below all later ones, ascending, and when the event after each came.
        self.history: tuple[list[float], list[int | None]] | None = ([-inf], [None]) if self._remembers else None

    def add(self, arrived: Arrived, now: int, combine: Combine) -> None:
        """Take in what came at one instant. Amortised O(1)."""
        if now != self.at:
            self.at, self.here, self.here_counted = now, None, 0
        self.level = arrived.progress[0]
        self.value = combined(self.value, arrived, combine)
        self.here = combined(self.here, arrived, combine)
        self.counted += len(arrived.progress)
        self.here_counted += len(arrived.progress)
        if self.history is not None:
            values, following = self.history
            following[-1] = now
            while values[-1] >= self.value and len(values) > 1:
                values.pop()
                following.pop()
            values.append(self.value)
            following.append(None)

    def since(self, required: float) -> int | None:
        """Return since when `required` has been met that is met now, where that is remembered. O(log steps)."""
        if self.history is None:
            return None
        values, following = self.history
        return following[bisect_left(values, required) - 1]


def combined(value: float | None, arrived: Arrived, combine: Combine) -> float:
    """Return what events come to, with those that arrived."""
    if combine == "sum":
        return (value or 0) + arrived.total
    greatest = arrived.progress[0]
    return greatest if combine == "last" or value is None or greatest > value else value
