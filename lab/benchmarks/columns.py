"""Benchmarks of columns of timers: the bulk calls, and the replay of a trace. No timer is a Python object."""

from __future__ import annotations

import heapq
import random
from array import array
from collections.abc import Callable, Iterator

from abeyant.kernels.bulk import BulkWheel
from abeyant.kernels.replay import NEVER
from abeyant.kernels.replay import replay as columnar_replay
from lab.benchmarks.effort import Effort
from lab.benchmarks.measurement import Sample
from lab.benchmarks.rounds import Rounds, clock

GAP = 10.0  # µs from one start to the next, mean: a Poisson process
TICK = 1000  # µs
TIMEOUT = 300_000_000  # µs: what is pending is decided by the waits; one operation in 10,000 expires
SHARE = 0.25  # of the patience, for the loop in Python
AHEAD = 120_000_000, 240_000_000  # µs, of the bulk calls' deadlines


def replay(rival: str, size: int, effort: Effort) -> Sample:
    """Measure operations per second in the replay of a trace, with about `size` pending. Nothing is deducted."""
    rows = 20 * effort.most
    if rival == "heap-loop":
        columns = trace(size, min(rows, max(200_000, 2 * size)))
        return _rounds(effort, len(columns[0]), lambda: by_heap(*columns), SHARE)
    columns = trace(size, rows)
    return _rounds(effort, rows, lambda: columnar_replay(*columns, tick=TICK))


def trace(pending: int, rows: int) -> tuple[array[int], array[int], array[int]]:
    """Return starts in order, time-outs, and the times at which conditions come true (µs).

    The mean wait is `pending` times the mean gap between starts, so about `pending` operations wait (Little's law).
    """
    source = random.Random(1)
    starts, ends = array("q"), array("q")
    now = 1.7e15
    for _ in range(rows):
        now += source.expovariate(1 / GAP)
        starts.append(int(now))
        ends.append(NEVER if source.random() < 1e-4 else int(now + source.expovariate(1 / (pending * GAP))))
    return starts, array("q", [TIMEOUT]) * rows, ends


def by_heap(starts: array[int], timeouts: array[int], ends: array[int]) -> int:
    """Replay a trace in the usual way in Python, with a heap of the operations' ends. Return how many expired."""

    def events() -> Iterator[int]:
        for row in range(len(starts)):
            while heap and heap[0][0] <= starts[row]:
                yield heapq.heappop(heap)[1]
            heapq.heappush(heap, (min(ends[row], starts[row] + timeouts[row]), row))
        while heap:
            yield heapq.heappop(heap)[1]

    heap: list[tuple[int, int]] = []
    return sum(ends[row] > starts[row] + timeouts[row] for row in events())


def _rounds(effort: Effort, rows: int, work: Callable[[], object], share: float = 1.0) -> Sample:
    work()  # warm up
    rounds: list[float] = []
    rounds_left = Rounds(effort, share)
    while rounds_left.another():
        began = clock()
        work()
        rounds.append(rows * 1e9 / (clock() - began))
    return Sample(rounds, rows)


def bulk_add(rival: str, size: int, effort: Effort) -> Sample:
    """Measure the ns per timer that `add_many` starts, while `size` others are pending."""
    del rival
    wheel = BulkWheel(TICK)
    wheel.add_many(_deadlines(size))
    deadlines = _deadlines(effort.most)
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    while rounds_left.another():
        began = clock()
        handles = wheel.add_many(deadlines)
        rounds.append((clock() - began) / len(deadlines))
        wheel.remove_many(handles)
    return Sample(rounds, len(deadlines))


def bulk_remove(rival: str, size: int, effort: Effort) -> Sample:
    """Measure the ns per timer that `remove_many` stops, in random order among `size` pending timers."""
    del rival
    wheel = BulkWheel(TICK)
    source = random.Random(2)
    handles = list(wheel.add_many(_deadlines(size)))
    count = min(size, effort.most)
    deadlines = _deadlines(count)
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    while rounds_left.another():
        source.shuffle(handles)
        picked = array("q", handles[:count])
        began = clock()
        removed = wheel.remove_many(picked)
        rounds.append((clock() - began) / count)
        if removed != count:
            raise RuntimeError(f"remove_many stopped {removed:,} of {count:,} pending timers")
        handles[:count] = wheel.add_many(deadlines)
    return Sample(rounds, count)


def bulk_expire(rival: str, size: int, effort: Effort) -> Sample:
    """Measure the ns per timer that `advance_into` returns, of `size` timers that come due one tick after another."""
    del rival
    payloads = array("q", [0]) * size
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    while rounds_left.another():
        wheel = BulkWheel(TICK)
        wheel.add_many(_deadlines(size))
        began = clock()
        count = wheel.advance_into(AHEAD[1], payloads)
        rounds.append((clock() - began) / size)
        if count != size:
            raise RuntimeError(f"advance_into returned {count:,} of {size:,} timers that were due")
    return Sample(rounds, size)


def _deadlines(count: int) -> array[int]:
    source = random.Random(1)
    return array("q", (source.randrange(*AHEAD) for _ in range(count)))
