"""Measure whether the cost of insert and delete grows with the number of pending timers, and how.

Deadlines come in three orders, as the cost in a heap depends on the order: at random; each the latest so far, as with
one time-out for all; each the earliest so far, the heap's worst case. Designs are called from Python, as users call
them. The cost of the call alone is also measured, by removing a timer that has ended already.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from abeyant.pages.figure import Figure
from lab.claim import MATSUDA, VARGHESE, Claim, Finding
from lab.experiment import Experiment, Measure, Parameters
from lab.panels import (
    NANOSECONDS,
    Panel,
    figure_of,
    line_a_design,
    measured_axis,
)
from lab.rivals import DESIGNS, TimerQueue
from lab.run import Run

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
    """Return the grid: every design at 1 k, 10 k, ... 10 M pending timers."""
    sizes = [1_000, 10_000, 100_000] + ([] if quick else [1_000_000, 10_000_000])
    return [(design, {"pending": n}) for design in DESIGNS for n in sizes if n <= _MOST.get(design, n)]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Measure the ns of each operation, as medians of some batches."""
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
    """Return the ns of an insert and of a delete. Leaves the queue as it was before."""
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
    """Do `work` on `values`, 50 at a time, until the time `until`. Return all results, and the ns per value."""
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
    """Return the ns per task that comes due. Runs all tasks, as a wheel's cascades are done long before deadlines."""
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
    """Return the ns of a call from Python that finds nothing to do."""
    remove = queue.remove
    ended = queue.add(_SPAN, None)
    remove(ended)
    calls = [_batches([ended] * _BATCH, float("inf"), lambda some: [remove(handle) or 0 for handle in some])[1]]
    calls += [_batches([ended] * _BATCH, float("inf"), lambda some: [remove(handle) or 0 for handle in some])[1]]
    return min(calls)


def _turn_after_stops(queue: TimerQueue, handles: list[int]) -> float:
    """Return the ms of the first turn after six in ten timers were stopped. Lazy deletion has to sweep in it."""
    for handle in handles[::2] + handles[1::10]:
        queue.remove(handle)
    began = time.perf_counter_ns()
    queue.advance(0)
    return (time.perf_counter_ns() - began) / 1e6


_FLAT: Final = 1.5  # a cost that grows by less over the whole range counts as constant: caches account for that much


def _growth(run: Run, design: str, metric: str, *, calls: bool = True) -> float:
    """Return the cost with the most pending timers, divided by the cost with the least.

    With `calls`, the cost of the call from Python is deducted from both. The call costs the same in all designs. So it
    is the least that any cell measured, as the machine is slower now and then.
    """
    rows = run.of(design).sort_values("pending").dropna(subset=[metric])
    call = float(run.cells["the call alone"].min()) if calls else 0.0
    alone = (rows[metric] - call).clip(lower=1)
    return float(alone.iloc[-1] / alone.iloc[0])


def _insert(run: Run) -> Finding:
    wheel = max(_growth(run, "wheel", f"insert {order}") for order in ("random", "earliest", "latest"))
    heap = {order: _growth(run, "indexed-heap", f"insert {order}") for order in ("earliest", "random", "latest")}
    most = int(run.of("wheel")["pending"].max())
    said = (
        f"from 1,000 to {most:,} pending the wheel's insert grows {wheel:.1f}-fold at most ({_FLAT} is flat). The"
        f" heap's grows {heap['earliest']:.1f}-fold where each deadline is the earliest so far,"
        f" {heap['random']:.1f}-fold at random, and {heap['latest']:.1f}-fold where each is the latest, as with one"
        " time-out for all"
    )
    if wheel > _FLAT and wheel > heap["random"]:
        return Finding("not held here", said)
    if heap["earliest"] <= _FLAT:
        return Finding("not held here", said)
    return Finding("held" if min(heap.values()) > _FLAT and wheel <= _FLAT else "held in part", said)


def _delete(run: Run) -> Finding:
    growths = {name: _growth(run, name, "delete random") for name in ("wheel", "indexed-heap", "delay-queue")}
    slowest = float(run.of("delay-queue")["delete random"].max())
    said = (
        f"the wheel's delete grows {growths['wheel']:.1f}-fold, the heap's with places"
        f" {growths['indexed-heap']:.1f}-fold, the delay queue's {growths['delay-queue']:,.0f}-fold, to"
        f" {slowest / 1_000:,.0f} µs"
    )
    parts = [growths["delay-queue"] > 10, growths["indexed-heap"] > _FLAT, growths["wheel"] <= _FLAT]
    if not parts[0]:
        return Finding("not held here", said)
    return Finding("held" if all(parts) else "held in part", f"{said} ({_FLAT} is flat)")


def _expiring(run: Run) -> Finding:
    wheel, heap = (_growth(run, name, "expire", calls=False) for name in ("wheel", "indexed-heap"))
    most = int(run.of("wheel")["pending"].max())
    each, other = (float(run.of(name, pending=most)["expire"].iloc[0]) for name in ("wheel", "indexed-heap"))
    said = (
        f"from 1,000 to {most:,} pending the cost per task that comes due grows {heap:.1f}-fold in the heap and"
        f" {wheel:.1f}-fold on the wheel, cascades included. At {most:,} it is {other:,.0f} ns in the heap and"
        f" {each:,.0f} ns on the wheel"
    )
    if heap <= _FLAT:
        return Finding("not held here", said)
    return Finding("held" if wheel <= _FLAT else "held in part" if wheel < heap else "not held here", said)


def _stall(run: Run) -> Finding:
    if "turn after stops" not in run.cells:
        return Finding("not decided", "the run has not measured it")
    most = int(run.of("lazy-heap").dropna(subset=["turn after stops"])["pending"].max())
    lazy, wheel = (float(run.of(name, pending=most)["turn after stops"].iloc[0]) for name in ("lazy-heap", "wheel"))
    said = f"with six in ten of {most:,} stopped, the next turn takes {lazy:.1f} ms, and {wheel:.3f} ms on the wheel"
    return Finding("held" if lazy > 10 * wheel else "not held here", said)


CLAIMS: Final[list[Claim]] = [
    Claim(
        "Starting a timer is O(log n) in a heap, and O(1) on a timing wheel.",
        f"{VARGHESE}; {MATSUDA}",
        _insert,
        "Held if the wheel's cost grows 1.5-fold at most, and the heap's more in each order. Not held if the "
        "heap's grows no more even where each is the earliest, or if the wheel's grows more than 1.5-fold and "
        "more than the heap's at random.",
    ),
    Claim(
        "Stopping one is O(n) in a delay queue, O(log n) in a heap that knows places, and O(1) on a wheel.",
        f"{VARGHESE}; {MATSUDA}",
        _delete,
        "Held if the cost grows more than 10-fold in the delay queue, more than 1.5-fold in the heap, "
        "and at most 1.5-fold on the wheel. Held in part if it does so in the delay queue only.",
    ),
    Claim(
        "Taking out what is due is O(log n) in a heap, and O(1) on a wheel.",
        VARGHESE,
        _expiring,
        "Held if the heap's cost grows more than 1.5-fold, and the wheel's at most 1.5-fold. Held in part if "
        "the wheel's grows less than the heap's.",
    ),
    Claim(
        "A heap that deletes lazily pays for it in a stall.",
        "CPython's asyncio; law T4",
        _stall,
        "Held if the heap's turn takes more than 10 times the wheel's.",
    ),
]


def figure(run: Run) -> Figure:
    """Plot the costs of insert, delete and expiry against the number pending, on logarithmic axes."""
    panels = [
        Panel("insert, deadlines at random, ns", "pending", "insert random", "ns", NANOSECONDS),
        Panel("insert, each the earliest so far, ns", "pending", "insert earliest", "ns", NANOSECONDS),
        Panel("delete, ns (random order)", "pending", "delete random", "ns", NANOSECONDS),
        Panel("expire, ns a task, all of them", "pending", "expire", "ns", NANOSECONDS),
    ]
    return figure_of(panels, line_a_design(run), "timers pending", rows=2, across=measured_axis(run.choices("pending")))


READING: Final = (
    "Each point is the median of some batches of 5,000, called from Python. Some 40 ns of it is the call. A "
    "horizontal line is O(1), a slope of one is O(n). O(log n) is hardly a slope on these axes, so compare the "
    "left end with the right one. What grows on the wheels too is the processor's caches and pages."
)

EXPERIMENT = Experiment(
    "cost",
    "What starting and stopping a timer costs",
    "real",
    grid,
    measure,
    claims=CLAIMS,
    figure=figure,
    reading=READING,
)
