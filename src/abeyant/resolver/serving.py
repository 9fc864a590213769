"""Assign events to operations by the operations' age, where each event serves one operation (law O7)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from abeyant.resolver.key_state import Arrivals, KeyState
from abeyant.resolver.operation import Operation
from abeyant.resolver.rules import Rules


class ServingKeyState(KeyState):
    """The state of a key whose events serve one operation each."""

    __slots__ = ("_number", "_rules", "unused", "waiting")

    def __init__(self, key: Hashable, keep_history: bool, rules: Rules) -> None:
        self._rules = rules
        self._number = 0  # sequence number of the next unused event
        self.waiting: OrderedDict[Operation, None] = OrderedDict()
        """Pending operations by start, and of one start by turn (reversed with `newest`, which reads backwards)."""
        super().__init__(key, keep_history)

    def forget(self) -> None:
        """Forget all events, unused events too; a pending operation that is paused stays paused."""
        super().forget()
        self.unused: OrderedDict[int, tuple[int, float]] = OrderedDict()
        """Time and progress of the events that served no operation, by sequence number."""

    def offer(self, progress: float, now: int) -> tuple[Operation | None, list[Operation]]:
        """Offer an event to pending operations by age. Return the operation that took it, and the overdue ones met."""
        overdue = []
        waiting: Iterable[Operation] = reversed(self.waiting) if self._rules.serves == "newest" else self.waiting
        for operation in waiting:
            if operation.last < now:
                overdue.append(operation)
            elif operation.serve_with(now, progress):
                if not operation.needs_event():
                    del self.waiting[operation]
                return operation, overdue
        return None, overdue

    def leave_unused(self, unused: list[float], now: int) -> None:
        """Keep unused events for operations that start later; with `from_start`, only until this instant is over.

        `unused` is sorted in descending order. `serve_unused` will get an instant's greatest first, from either end.
        """
        if self._rules.count != "always" and self.unused and next(iter(self.unused.values()))[0] != now:
            self.unused.clear()
        for progress in reversed(unused) if self._rules.serves == "newest" else unused:
            self.unused[self._number] = now, progress
            self._number += 1

    def serve_unused(self, operation: Operation, now: int) -> None:
        """Offer unused events to an operation that starts: the earliest first; with serves="newest", the latest."""
        numbers = []
        for number in reversed(self.unused) if self._rules.serves == "newest" else self.unused:
            at, progress = self.unused[number]
            if not operation.needs_event():
                break
            if (self._rules.count == "always" or at == now) and operation.serve_with(at, progress):
                numbers.append(number)
        for number in numbers:
            del self.unused[number]
        if not operation.needs_event():
            self.waiting.pop(operation, None)


def serve(
    reached: Sequence[tuple[Any, Arrivals]],
    starts: list[Operation],
    now: int,
    rules: Rules,
    expire: Callable[[Operation], object],
) -> Iterator[Operation]:
    """Assign the events of one instant, and earlier unused events to `starts`. Yield operations that events served."""
    newest, count = rules.serves == "newest", rules.count
    joining = [(operation, operation.completing[0].key_state) for operation in starts if operation.completing]
    if not newest and count != "after_start":
        for operation, key_state in joining:
            key_state.serve_unused(operation, now)
    if count != "after_start":
        _join(joining, newest)
    for key_state, arrivals in reached:
        unused = []
        for progress in arrivals.progress:
            taker, overdue = key_state.offer(progress, now)
            for operation in overdue:
                expire(operation)
            if taker is None:
                unused.append(progress)
            else:
                yield taker
        if count != "after_start":
            key_state.leave_unused(unused, now)
    if count == "after_start":
        _join(joining, newest)
    elif newest:
        for operation, key_state in joining:
            key_state.serve_unused(operation, now)


def _join(joining: list[tuple[Operation, Any]], newest: bool) -> None:
    """Queue operations that start at one instant for events to serve them, in the order of their turn."""
    for operation, key_state in reversed(joining) if newest else joining:
        if operation.needs_event():
            key_state.waiting[operation] = None
