"""Insert and delete against what is pending: whether the cost grows, and how.

Deadlines come in three orders, for a heap knows them apart: at random; each the latest so far, as where all time-outs
are alike; each the earliest so far, its worst. Called from Python, as users call it; what the call alone costs is
measured too, by removing what has ended already.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from lab.experiment import Experiment, Measure, Parameters
from lab.rivals import DESIGNS, TimerQueue

_SPAN = 600_000  # ticks of a millisecond over which what is pending comes due
_BATCH = 5_000
_ROUNDS = 7
_PATIENCE = 1.0  # seconds a measure
_LONG_PATIENCE = 12.0  # to expire them all

# The most that is pending: where an operation visits every task, more would only take long.
_MOST = {"delay-queue": 1_000_000, "unsorted-list": 1_000_000, "sorted-list": 100_000}
_STOPPED = {"delay-queue": 10_000}  # the most of which six in ten are stopped
_SHAPES: dict[str, dict[str, int]] = {"hashed-wheel": {"tick": 100, "size": 512}, "ring": {"size": 1 << 21}}


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Every design at 1 k, 10 k, ... 10 M pending."""
    sizes = [1_000, 10_000, 100_000] + ([] if quick else [1_000_000, 10_000_000])
    return [(design, {"pending": n}) for design in DESIGNS for n in sizes if n <= _MOST.get(design, n)]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Nanoseconds an operation, each the median of some batches."""
    pending = int(parameters["pending"])
    queue = DESIGNS[design].make(**_SHAPES.get(design, {}))
    chance = random.Random(pending)
    # Ascending, so that the sorted list is built in time; deadlines are spread evenly all the same.
    handles = []
    for number in range(pending):
        handle = queue.add(_SPAN // 2 + number * _SPAN // pending, None)
        if pending <= _STOPPED.get(design, 1_000_000):
            handles.append(handle)
    low, high = _SPAN // 2, _SPAN + _SPAN // 2
    orders: dict[str, Callable[[], list[int]]] = {
        "random": lambda: [chance.randrange(low, high) for _ in range(_BATCH)],
        "latest": lambda: list(range(high, high + _BATCH)),
        "earliest": lambda: list(range(low - 1, low - 1 - _BATCH, -1)),
    }
    measures = []
    for name, deadlines in orders.items():
        inserts, deletes = _insert_delete(queue, deadlines, chance)
        measures += [Measure(f"insert {name}", inserts, "ns"), Measure(f"delete {name}", deletes, "ns")]
    if handles:
        measures.append(Measure("turn after stops", _turn_after_stops(queue, handles), "ms"))
    return [*measures, Measure("expire", _expire(queue), "ns"), Measure("the call alone", _call(queue), "ns")]


def _insert_delete(queue: TimerQueue, deadlines: Callable[[], list[int]], chance: random.Random) -> tuple[float, float]:
    """Nanoseconds an insert and a delete, with the queue as it was before and after."""
    inserts: list[float] = []
    deletes: list[float] = []
    add, remove = queue.add, queue.remove
    until = time.perf_counter() + _PATIENCE
    while len(inserts) < _ROUNDS and (time.perf_counter() < until or not inserts):
        handles, each = _batches(deadlines(), until, lambda some: [add(deadline, None) for deadline in some])
        inserts.append(each)
        chance.shuffle(handles)
        gone, each = _batches(handles, until + _PATIENCE, lambda some: [remove(handle) or 0 for handle in some])
        deletes.append(each)
        for handle in handles[len(gone) :]:
            remove(handle)
        queue.advance(0)  # a turn: who deletes lazily sweeps now
    return median(inserts), median(deletes)


def _batches(values: list[int], until: float, work: Callable[[list[int]], list[Any]]) -> tuple[list[Any], float]:
    """What `work` makes of `values`, some at a time, and nanoseconds each; it stops when patience is over."""
    done: list[Any] = []
    spent = 0
    for first in range(0, len(values), 50):
        some = values[first : first + 50]
        began = time.perf_counter_ns()
        made = work(some)
        spent += time.perf_counter_ns() - began
        done += made
        if time.perf_counter() > until:
            break
    return done, spent / len(done)


def _expire(queue: TimerQueue) -> float:
    """Nanoseconds a task that comes due, of all there are, for who cascades does it early."""
    expired = 0
    now = _SPAN // 2
    step = max(1, _SPAN * _BATCH // len(queue))
    began = time.perf_counter_ns()
    until = time.perf_counter() + _LONG_PATIENCE
    while len(queue) and time.perf_counter() < until:
        now += step
        expired += len(queue.advance(now))
    return (time.perf_counter_ns() - began) / max(expired, 1)


def _call(queue: TimerQueue) -> float:
    """Nanoseconds of a call that finds nothing to do."""
    remove = queue.remove
    ended = queue.add(_SPAN, None)
    remove(ended)
    calls = [_batches([ended] * _BATCH, float("inf"), lambda some: [remove(handle) or 0 for handle in some])[1]]
    calls += [_batches([ended] * _BATCH, float("inf"), lambda some: [remove(handle) or 0 for handle in some])[1]]
    return min(calls)


def _turn_after_stops(queue: TimerQueue, handles: list[int]) -> float:
    """Milliseconds of the first turn after six in ten were stopped: when who deletes lazily has to sweep."""
    for handle in handles[::2] + handles[1::10]:
        queue.remove(handle)
    began = time.perf_counter_ns()
    queue.advance(0)
    return (time.perf_counter_ns() - began) / 1e6


EXPERIMENT = Experiment("cost", "What starting and stopping a timer costs", "real", grid, measure)
