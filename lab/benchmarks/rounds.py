"""Measure the cost of one operation: in rounds of many operations, with the cost of an empty loop deducted."""

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


class Rounds:
    """Counter of rounds. It stops after `effort.rounds`, or when the time limit is reached and three are done."""

    def __init__(self, effort: Effort, share: float = 1.0) -> None:
        self._until = time.monotonic() + share * effort.time_limit
        self._left = effort.rounds
        self._done = 0

    def another(self) -> bool:
        """Return whether to do another round."""
        over = self._left == 0 or (self._done >= 3 and time.monotonic() > self._until)
        self._left -= 1
        self._done += 1
        return not over


def timed(operation: Callable[[Any], object], parts: list[Part]) -> Steps[tuple[int, list[Any]]]:
    """Return the ns that the operation takes for all parts, including the driver's turns; and its results."""
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
    """Return the cost per operation in ns.

    `make` returns the work of a number of operations, cut into parts; `operation` does one part; `empty` is the same
    loop without the operation; and `after` (not timed) restores the state from the operation's results.
    """
    count = min(CHUNK, effort.most)
    spent = 0
    for _ in range(3):  # warm up, and estimate its speed
        spent, results = yield from timed(operation, make(count))
        if after is not None:
            after(results)
    chunks = round(effort.seconds * 1e9 / max(spent, 1))
    count = min(max(1, chunks) * count, effort.most)

    rounds: list[float] = []
    idle: list[float] = []
    operations = 0
    rounds_left = Rounds(effort)
    while rounds_left.another():
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
