"""How many rows a second the columnar replay does on one core, beside a binary heap that does the same in Python.

    python -m benchmarks.replay [--rows 2000000] [--rounds 7]

A row is an operation: started once, and ended once, by its condition or at its deadline. So a row is two operations
on timers, or three and more where it cascades. Arrival is a Poisson process of 100,000 rows a second, times are in
microseconds, the tick is a millisecond; the mean wait sets how many are pending. Everything is counted: checking the
columns, outcomes, bringing the ends into order, the wheel, and the arrays that come out. Medians.

What is pending decides: the wheel's arrays are in the processor's second cache up to some ten thousand.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import time
from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

from abeyance.engine import is_compiled
from abeyance.engine.replay import NEVER, replay

TICK = 1000  # µs
GAP = 10.0  # µs from one start to the next, mean


class Case(NamedTuple):
    """A kind of trace; what is pending on average is wait / GAP."""

    name: str
    wait: float  # µs, mean
    timeout: int  # µs
    never: float  # the share whose condition never comes true


CASES = (
    Case("1 k pending, nearly all complete", 10_000, 30_000_000, 0.0001),
    Case("1 k pending, one in 20 expires", 10_000, 200_000, 0.05),
    Case("10 k pending, nearly all complete", 100_000, 30_000_000, 0.0001),
    Case("20 k pending, all expire", 10_000, 200_000, 1.0),
    Case("100 k pending, nearly all complete", 1_000_000, 30_000_000, 0.0001),
    Case("1 M pending, nearly all complete", 10_000_000, 300_000_000, 0.0001),
)


def trace(case: Case, rows: int) -> tuple[array[int], array[int], array[int]]:
    """Starts in order, time-outs, and when the conditions came true."""
    rng = random.Random(1)
    starts, ends = array("q"), array("q")
    now = 1.7e15
    for _ in range(rows):
        now += rng.expovariate(1 / GAP)
        starts.append(int(now))
        ends.append(NEVER if rng.random() < case.never else int(now + rng.expovariate(1 / case.wait)))
    return starts, array("q", [case.timeout]) * rows, ends


def by_heap(starts: array[int], timeouts: array[int], ends: array[int]) -> int:
    """The usual way in Python: a heap of events, each end taken from it. Returns how many expired."""

    def events() -> Iterator[int]:
        for row in range(len(starts)):
            while heap and heap[0][0] <= starts[row]:
                yield heapq.heappop(heap)[1]
            deadline = starts[row] + timeouts[row]
            heapq.heappush(heap, (min(ends[row], deadline), row, ends[row] > deadline))
        while heap:
            yield heapq.heappop(heap)[1]

    heap: list[tuple[int, int, bool]] = []
    expired = 0
    for row in events():
        expired += ends[row] > starts[row] + timeouts[row]
    return expired


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The median of so many rounds."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    """Measure what the command line says, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{'' if is_compiled() else 'INTERPRETED; '}{options.rows:,} rows, median of {options.rounds} rounds")
    print(f"{'case':36} {'M rows/s':>9} {'ns/row':>8} {'most pending':>13} {'cascades':>10} {'x heap in Python':>17}")
    for case in CASES:
        columns = trace(case, options.rows)
        took = seconds(lambda columns=columns: replay(*columns, tick=TICK), options.rounds)  # type: ignore[misc]
        stats = replay(*columns, tick=TICK).stats
        part = tuple(column[: options.rows // 10] for column in columns)
        ours = seconds(lambda part=part: replay(*part, tick=TICK), 3)  # type: ignore[misc]
        heap = seconds(lambda part=part: by_heap(*part), 1)  # type: ignore[misc]
        print(
            f"{case.name:36} {options.rows / took / 1e6:9.2f} {took / options.rows * 1e9:8.1f} "
            f"{stats.max_pending:13,} {stats.cascaded:10,} {heap / ours:17.1f}"
        )


if __name__ == "__main__":
    main()
