"""The cost of one operation: rounds of many, the empty loop deducted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from lab.benchmarks.effort import Effort
from lab.benchmarks.filling import CHUNK
from lab.benchmarks.measurement import Sample, Steps

clock = time.perf_counter_ns

Part = Sequence[Any]


class Patience:
    """Ends a series of rounds that takes too long."""

    def __init__(self, effort: Effort, share: float = 1.0) -> None:
        self._until = time.monotonic() + share * effort.patience
        self._left = effort.rounds
        self._done = 0

    def another(self) -> bool:
        """Whether to do another round."""
        over = self._left == 0 or (self._done >= 3 and time.monotonic() > self._until)
        self._left -= 1
        self._done += 1
        return not over


def timed(operation: Callable[[Any], object], parts: list[Part]) -> Steps[tuple[int, list[Any]]]:
    """Nanoseconds for the operation on every part, the driver's turns in between included; and its results."""
    results = []
    began = clock()
    for part in parts:
        results.append(operation(part))
        yield None
    return clock() - began, results


def cost(
    effort: Effort,
    make: Callable[[int], list[Part]],
    operation: Callable[[Any], object],
    empty: Callable[[Any], object],
    after: Callable[[list[Any]], None] | None = None,
) -> Steps[Sample]:
    """Nanoseconds an operation.

    `make` gives work for so many operations, `operation` does a part of it, `empty` is the same loop with nothing
    in it, and `after`, which is not timed, puts things back from the operation's results.
    """
    count = min(CHUNK, effort.most)
    spent = 0
    for _ in range(3):  # warm up, and see how fast it is
        spent, results = yield from timed(operation, make(count))
        if after is not None:
            after(results)
    chunks = round(effort.seconds * 1e9 / max(spent, 1))
    count = min(max(1, chunks) * count, effort.most)

    rounds: list[float] = []
    idle: list[float] = []
    operations = 0
    patience = Patience(effort)
    while patience.another():
        parts = make(count)
        operations = sum(len(part) for part in parts)
        spent, results = yield from timed(operation, parts)
        nothing, _ = yield from timed(empty, parts)
        if after is not None:
            after(results)
        del results
        rounds.append(spent / operations)
        idle.append(nothing / operations)
    deducted = statistics.median(idle)
    return Sample([figure - deducted for figure in rounds], operations, {"empty": idle})
