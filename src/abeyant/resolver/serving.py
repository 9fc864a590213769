"""Each event serves one operation: who gets it (law O7)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from abeyant.resolver.line import Arrived, Line
from abeyant.resolver.operation import Operation
from abeyant.resolver.words import Words


class ServingLine(Line):
    """A line whose events serve one operation each."""

    __slots__ = ("_number", "_words", "unused", "waiting")

    def __init__(self, key: Hashable, remembers: bool, words: Words) -> None:
        self._words = words
        self._number = 0  # of the next unused event
        self.waiting: OrderedDict[Operation, None] = OrderedDict()
        """Operations that start later stand behind, and of one start in the order in which `newest` goes back."""
        super().__init__(key, remembers)

    def forget(self) -> None:
        """Be as if nothing had come; but what is paused stays so."""
        super().forget()
        self.unused: OrderedDict[int, tuple[int, float]] = OrderedDict()
        """Time and progress of events that served nobody, in their order."""

    def offer(self, progress: float, now: int) -> tuple[Operation | None, list[Operation]]:
        """Offer an event to the operations that wait, by age. Return which took it, and those found overdue."""
        overdue = []
        waiting: Iterable[Operation] = reversed(self.waiting) if self._words.serves == "newest" else self.waiting
        for operation in waiting:
            if operation.last < now:
                overdue.append(operation)
            elif operation.takes(now, progress):
                if not operation.lacks_service():
                    del self.waiting[operation]
                return operation, overdue
        return None, overdue

    def leave_unused(self, unused: list[float], now: int) -> None:
        """Keep events that served nobody for operations that start later, or with `from_start` still at this instant.

        They are sorted from the greatest down, and stay so for whoever takes them from either end.
        """
        if self._words.count != "always" and self.unused and next(iter(self.unused.values()))[0] != now:
            self.unused.clear()
        for progress in reversed(unused) if self._words.serves == "newest" else unused:
            self.unused[self._number] = now, progress
            self._number += 1

    def serve_unused(self, operation: Operation, now: int) -> None:
        """Let an operation that starts take unused events: the earliest first, with `newest` the latest."""
        taken = []
        for number in reversed(self.unused) if self._words.serves == "newest" else self.unused:
            at, progress = self.unused[number]
            if not operation.lacks_service():
                break
            if (self._words.count == "always" or at == now) and operation.takes(at, progress):
                taken.append(number)
        for number in taken:
            del self.unused[number]
        if not operation.lacks_service():
            self.waiting.pop(operation, None)


def serve(
    reached: Sequence[tuple[Any, Arrived]],
    starts: list[Operation],
    now: int,
    words: Words,
    expire: Callable[[Operation], object],
) -> Iterator[Operation]:
    """Hand out the events of one instant, and unused ones to operations that start; yield who took one."""
    newest, count = words.serves == "newest", words.count
    joining = [(operation, operation.completing[0].line) for operation in starts if operation.completing]
    if not newest and count != "after_start":
        for operation, line in joining:
            line.serve_unused(operation, now)
    if count != "after_start":
        _join(joining, newest)
    for line, some in reached:
        unused = []
        for progress in some.progress:
            taker, overdue = line.offer(progress, now)
            for operation in overdue:
                expire(operation)
            if taker is None:
                unused.append(progress)
            else:
                yield taker
        if count != "after_start":
            line.leave_unused(unused, now)
    if count == "after_start":
        _join(joining, newest)
    elif newest:
        for operation, line in joining:
            line.serve_unused(operation, now)


def _join(joining: list[tuple[Operation, Any]], newest: bool) -> None:
    """Let operations that start at one instant, the first in turn first, wait for events that serve one."""
    for operation, line in reversed(joining) if newest else joining:
        if operation.lacks_service():
            line.waiting[operation] = None
