"""Measure the cost of delayed purging: memory and work against the purge interval.

Each operation waits on one key that fires some milliseconds later, and on further keys that never fire, as a broker's
operation waits on idle partitions besides a busy one. The clock is virtual.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import deque
from math import log10
from typing import Any, Final

from abeyant import DelayedOperation
from abeyant.pages.figure import Figure
from lab.claim import Claim, Finding
from lab.experiment import Experiment, Measure, Parameters
from lab.look import line, title
from lab.panels import (
    LOG,
    Panel,
    figure_of,
    hover_words,
    in_order,
    measured_axis,
)
from lab.purgatories import DESIGNS
from lab.run import Run

_MS = 1_000_000  # ns
_TIMEOUT = 30.0
_RATE = 1_000  # a second: one each millisecond
_WAIT = 30  # milliseconds until the key that fires does
_PAYLOAD = 100  # bytes, as in the published benchmark
_BUSY_KEYS = 100
_SLOW_KEYS = 1_000


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Return the grid: 1 to 100 keys per operation, purge intervals from 100 to 100,000; our design has no interval."""
    keys = [1, 10] if quick else [1, 3, 10, 30, 100]
    intervals = [100, 1_000, 10_000] if quick else [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
    operations = 5_000 if quick else 20_000
    cells: list[tuple[str, Parameters]] = []
    for several in keys:
        cells.append(("ours", {"keys": several, "purge_interval": 0, "operations": operations}))
        cells += [
            (design, {"keys": several, "purge_interval": interval, "operations": operations})
            for design in ("kafka", "old")
            for interval in intervals
        ]
    return cells


class Request(DelayedOperation):
    """An operation that completes when its key has fired."""

    def __init__(self) -> None:
        super().__init__(_TIMEOUT)
        self.payload = bytearray(_PAYLOAD)
        self.fired = False

    def try_complete(self) -> bool:
        """Complete if the key has fired (see `DelayedOperation.try_complete`)."""
        return self.fired and self.force_complete()


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Measure CPU in one run and memory in another, as tracing memory slows the program down."""
    operations = int(parameters["operations"])
    cpu, watched, delayed, work = _play(design, parameters)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        _play(design, parameters)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return [
        Measure("CPU an operation", cpu / operations / 1_000, "us"),
        Measure("memory, most", peak / 2**20, "MiB"),
        Measure("watched, most", watched, "watches"),
        Measure("in the timer, most", delayed, "operations"),
        Measure("purges", work[0], "purges"),
        Measure("looked at by purges", work[1] / operations, "watches an operation"),
    ]


def _play(design: str, parameters: Parameters) -> tuple[int, int, int, tuple[int, int]]:
    operations, keys = int(parameters["operations"]), int(parameters["keys"])
    room = DESIGNS[design].virtual(int(parameters["purge_interval"]))
    purgatory = room.purgatory
    slow = [f"slow-{number}" for number in range(_SLOW_KEYS)]
    waiting: deque[tuple[Any, str]] = deque()
    watched = delayed = 0
    began = time.process_time_ns()
    for number in range(operations + _WAIT):
        room.advance_to(number * _MS * 1_000 // _RATE)
        if number < operations:
            request, key = Request(), f"busy-{number % _BUSY_KEYS}"
            first = number * (keys - 1) % (_SLOW_KEYS - keys + 1)
            purgatory.try_complete_else_watch(request, [key, *slow[first : first + keys - 1]])
            waiting.append((request, key))
        if number >= _WAIT:
            request, key = waiting.popleft()
            request.fired = True
            purgatory.check_and_complete(key)
        watched = max(watched, purgatory.watched)
        delayed = max(delayed, purgatory.delayed)
    spent = time.process_time_ns() - began
    work = room.work()
    room.close()
    return spent, watched, delayed, work


def _memory(run: Run) -> Finding:
    keys = run.choices("keys")[-1]
    kafka = run.of("kafka", keys=keys).set_index("purge_interval")["memory, most"].sort_index()
    ours = float(run.of("ours", keys=keys)["memory, most"].iloc[0])
    ratio = float(kafka.iloc[-1] / kafka.iloc[0])
    said = (
        f"with {keys} keys an operation Kafka's design needs {kafka.iloc[0]:,.1f} MiB at a purge interval of"
        f" {kafka.index[0]:,}, {kafka.iloc[-1]:,.1f} MiB at {kafka.index[-1]:,}; ours {ours:,.1f} MiB, it has none"
    )
    return Finding("held" if ratio >= 3 else "held in part" if ratio >= 1.3 else "not held here", said)


def _frequent(run: Run) -> Finding:
    keys = run.choices("keys")[-1]
    visits = run.of("kafka", keys=keys).set_index("purge_interval")["looked at by purges"].sort_index()
    cpu = run.of("kafka", keys=keys).set_index("purge_interval")["CPU an operation"].sort_index()
    ours = float(run.of("ours", keys=keys)["CPU an operation"].iloc[0])
    ratio = float(cpu.iloc[0] / cpu.min())
    said = (
        f"with {keys} keys, purges look at {visits.iloc[0]:,.0f} watches per operation at an interval of"
        f" {visits.index[0]:,}, and at {visits.iloc[-1]:,.0f} at {visits.index[-1]:,}. CPU per operation is"
        f" {cpu.iloc[0]:,.1f} µs against {cpu.min():,.1f} µs at best; ours takes {ours:,.1f} µs"
    )
    return Finding(
        "held" if ratio >= 1.2 else "held in part" if visits.iloc[0] > visits.iloc[-1] else "not held here", said
    )


CLAIMS: Final[list[Claim]] = [
    Claim(
        "Completed operations stay on the lists of slow keys; with a large purge interval they fill the memory.",
        "Apache Kafka: fetch and producer purgatory purge intervals; law P4",
        _memory,
        "Held if the largest interval needs at least 3 times the memory of the smallest; in part from 1.3 times.",
    ),
    Claim(
        "A small purge interval costs CPU.",
        "the same trade-off, from its other side",
        _frequent,
        "Held if the smallest interval costs at least 1.2 times the least CPU; in part if purges look at"
        " more than at the largest interval.",
    ),
]


_NEAR: Final = 0.08
"""The share of a panel's height that a line of small text needs."""


def _labels(run: Run, column: str, near: float) -> list[tuple[str, float]]:
    """Return labels for the ends of Kafka's lines: numbers of keys, and the height. Near ends share a label."""
    ends = []
    for keys in run.choices("keys"):
        last = run.of("kafka", keys=keys).sort_values("purge_interval").tail(1)
        ends += [(log10(value), str(keys)) for value in last[column]]
    together: list[list[tuple[float, str]]] = []
    for end in sorted(ends):
        if together and end[0] - together[-1][-1][0] <= near:
            together[-1].append(end)
        else:
            together.append([end])
    return [(", ".join(keys for _, keys in some), sum(at for at, _ in some) / len(some)) for some in together]


def figure(run: Run) -> Figure:
    """Plot memory and CPU against the purge interval, with a line for each number of keys."""
    panels = [
        Panel("most memory, MiB", "purge_interval", "memory, most", "MiB", LOG),
        Panel("CPU an operation, µs", "purge_interval", "CPU an operation", "µs", LOG),
    ]
    several = run.choices("keys")
    intervals = [interval for interval in run.choices("purge_interval") if interval]

    def draw(plot: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for number, keys in enumerate(several):
            for design in in_order(run):
                cells = run.of(design, keys=keys).sort_values("purge_interval")
                if cells.empty:
                    continue
                flat = design == "ours"
                x = [intervals[0], intervals[-1]] if flat else cells["purge_interval"]
                y = [cells[panel.y].iloc[0]] * 2 if flat else cells[panel.y]
                plot.add_scatter(
                    x=x,
                    y=y,
                    name=title(design),
                    legendgroup=design,
                    showlegend=first and bool(keys == several[-1]),
                    mode="lines" if flat else "lines+markers",
                    opacity=0.35 + 0.65 * (number + 1) / len(several),
                    line=line(design),
                    marker={"size": 4},
                    hovertemplate=hover_words(f"{title(design)}, {keys} keys", panel.unit, "%{x:,}"),
                    **axes,
                )
        values = run.cells[panel.y]
        values = values[values > 0]  # those that have a place on the axis
        near = _NEAR * log10(values.max() / values.min())
        for keys, at in _labels(run, panel.y, near):
            plot.add_annotation(
                x=log10(intervals[-1]), y=at, text=f"{keys} keys", xref=axes["xaxis"], yref=axes["yaxis"],
                showarrow=False, xanchor="left", xshift=6, font={"size": 11},
            )  # fmt: skip

    return figure_of(panels, draw, "purge interval, operations", rows=1, across=measured_axis(intervals))


READING: Final = (
    "Each operation waits on one key that fires after 30 ms and on others that never do. What it leaves behind on "
    "those is memory until a purge. Paler: fewer keys. Ours leaves nothing behind and has no interval: a level "
    "line."
)

EXPERIMENT = Experiment(
    "purge", "What forgetting late costs", "virtual", grid, measure, claims=CLAIMS, figure=figure, reading=READING
)
