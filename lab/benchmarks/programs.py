"""From a row's name to its program."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from lab import peers
from lab.benchmarks import costs, loops, room, storms
from lab.benchmarks.effort import Effort
from lab.benchmarks.measurement import Sample, Steps
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


def measure(rival: str, row: str, size: int, effort: Effort) -> Sample:
    """Measure in this process. Raises ImportError where something is not installed."""
    if rival == "purgatory":
        from lab.benchmarks import purgatories

        program: Callable[[int, Effort], Sample] = getattr(purgatories, row)
        return program(size, effort)
    if rival in peers.COLUMNS:
        from lab.benchmarks import columns

        column_program: Callable[[str, int, Effort], Sample] = getattr(columns, row)
        return column_program(rival, size, effort)
    with peers.load(rival)() as timer:
        if timer.largest < effort.most:  # what it is not measured beside, it is not to reach during a round either
            effort = replace(effort, most=timer.largest)
        if isinstance(timer, AsyncioRival) and row in _LOOPS:
            return timer.loop.run_until_complete(_LOOPS[row](timer, size, effort))
        return timer.run(_TIMERS[row](timer, size, effort))
