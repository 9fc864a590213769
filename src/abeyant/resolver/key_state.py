"""The state of one key: its events so far, and the watches of pending operations on it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from math import inf
from typing import Any, NamedTuple

from abeyant.resolver.rules import Combine


class Arrivals(NamedTuple):
    """The events of one key at one instant."""

    progress: list[float]  # the greatest first
    total: float


class KeyState:
    """The state of one key. Times are nanoseconds on the timer's clock."""

    __slots__ = (
        "_keep_history",
        "at",
        "counted",
        "here",
        "here_counted",
        "history",
        "key",
        "level",
        "states",
        "users",
        "value",
    )  # fmt: skip

    def __init__(self, key: Hashable, keep_history: bool) -> None:
        """With `keep_history`, remember the steps by which the value rose, for `since`; memory grows with the steps."""
        self.key = key
        self.users = 0  # watches of pending operations on this key
        self.states: dict[Any, None] = {}
        """The `WatchState` of each pending operation's watch on this key (no `complete` ones in `ServingKeyState`)."""
        self.level: float | None = None
        """The last progress (the greatest of its instant), whatever `combine` is: it decides whether a pause holds."""
        self._keep_history = keep_history
        self.forget()

    def forget(self) -> None:
        """Forget all events; a pending operation that is paused stays paused."""
        if not any(state.role == "pause" for state in self.states):
            self.level = None
        self.value: float | None = None
        """The progress of all events, combined."""
        self.counted = 0
        self.here: float | None = None
        """The progress of the events at `at`, combined. With `count="from_start"`, it counts for starts at `at`."""
        self.here_counted = 0
        self.at = -1
        # Values below all later ones, ascending, and the time of the event after each.
        self.history: tuple[list[float], list[int | None]] | None = ([-inf], [None]) if self._keep_history else None

    def add(self, arrived: Arrivals, now: int, combine: Combine) -> None:
        """Add the events of one instant. Amortised O(1)."""
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
        """Return since when the value has been at least `required`; None without a history. O(log steps)."""
        if self.history is None:
            return None
        values, following = self.history
        return following[bisect_left(values, required) - 1]


def combined(value: float | None, arrived: Arrivals, combine: Combine) -> float:
    """Return `value`, of all events before, combined with the events that arrived."""
    if combine == "sum":
        return (value or 0) + arrived.total
    greatest = arrived.progress[0]
    return greatest if combine == "last" or value is None or greatest > value else value
