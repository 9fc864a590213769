"""Turn the benchmarks' rows into experiments of the lab: rivals, sizes, and the program that measures each row."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from lab import peers
from lab.benchmarks import costs, jvm_rivals, loops, room, storms
from lab.benchmarks.catalogue import ROWS, SMALL, Row
from lab.benchmarks.effort import BY_NAME, Effort
from lab.benchmarks.measurement import OPERATIONS, ROUND, Sample, Steps
from lab.experiment import Experiment, Measure, Parameters
from lab.peers.loops import AsyncioRival
from lab.peers.rival import Rival

_TIMERS: dict[str, Callable[[Rival, int, Effort], Steps[Sample]]] = {
    "pair": costs.pair,
    "start": costs.start,
    "start_forgotten": costs.start_forgotten,
    "stop": costs.stop,
    "refresh": costs.refresh,
    "next": costs.next_expiration,
    "jump": storms.jump,
    "expiry": storms.expiry,
    "expiry_measured": storms.expiry,
    "stall_start": storms.stall_start,
    "stall_expiry": storms.stall_expiry,
    "stall_stop": storms.stall_stop,
    "memory": room.memory,
    "memory_forgotten": room.memory_forgotten,
    "collection": room.collection,
    "collection_forgotten": room.collection_forgotten,
    "lateness": storms.lateness,
}

_LOOPS: dict[str, Callable[[AsyncioRival, int, Effort], Coroutine[Any, Any, Sample]]] = {
    "timeout_scope": loops.timeout_scope,
    "idle": loops.idle,
    "http": loops.http,
}


def grid(row: Row, effort: str) -> Iterator[tuple[str, Parameters]]:
    """Yield the cells of a row: each rival at each size. Rivals limited to small sizes have only those."""
    sizes = row.sizes if effort == "full" else row.quick_sizes
    for size in sorted({*sizes, SMALL}):
        for name in row.rivals:
            small = name in peers.PYTHON and peers.load(name).largest == SMALL
            if (size in sizes or small) and _measures(name, row, size):
                for process in range(row.processes if effort == "full" else 1):
                    yield name, {"size": size, "effort": effort, "process": process}


def _measures(name: str, row: Row, size: int) -> bool:
    if name in peers.JVM:
        return jvm_rivals.measures(name, row.name)
    if name not in peers.PYTHON:
        return True
    kind = peers.load(name)
    if size > kind.largest or (row.name in ("expiry", "stall_expiry") and not kind.holds):
        return False
    return kind.stalls or not row.name.startswith("stall_")


def _experiment(row: Row) -> Experiment:
    def measured(rival: str, parameters: Parameters) -> list[Measure]:
        effort = BY_NAME[str(parameters["effort"])]
        sample = measure(rival, row.name, int(parameters["size"]), effort)
        return [
            *(Measure(ROUND, figure, row.unit_kept) for figure in sample.rounds),
            Measure(OPERATIONS, sample.operations, "a round"),
            *(Measure(name, figure, row.unit_kept) for name, figures in sample.extra.items() for figure in figures),
        ]

    def cells(quick: bool) -> list[tuple[str, Parameters]]:
        return list(grid(row, "quick" if quick else "full"))

    return Experiment(f"bench {row.name}", row.title, "real", cells, measured, peers.why_missing)


BENCHMARKS = {f"bench {row.name}": _experiment(row) for row in ROWS.values()}


def measure(rival: str, row: str, size: int, effort: Effort) -> Sample:
    """Measure a row in this process or in a JVM. Raise ImportError if a peer is not installed."""
    if rival in peers.JVM:
        return jvm_rivals.measure(rival, row, size, effort)
    if rival == "purgatory":
        from lab.benchmarks import purgatories

        program: Callable[[int, Effort], Sample] = getattr(purgatories, row)
        return program(size, effort)
    if rival in peers.COLUMNS:
        from lab.benchmarks import columns

        column_program: Callable[[str, int, Effort], Sample] = getattr(columns, row)
        return column_program(rival, size, effort)
    with peers.load(rival)() as timer:
        if timer.largest < effort.most:  # a round must not exceed its limit of pending timers either
            effort = replace(effort, most=timer.largest)
        if isinstance(timer, AsyncioRival) and row in _LOOPS:
            return timer.loop.run_until_complete(_LOOPS[row](timer, size, effort))
        return timer.run(_TIMERS[row](timer, size, effort))
