"""What forgetting late costs: memory and work against the purge interval, with slow keys that never fire.

Each operation waits on one key that fires, some milliseconds later, and on others that never do, as a broker's
operation waits on idle partitions beside a busy one. On a virtual clock.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import deque
from typing import Any

from abeyant import DelayedOperation
from lab.experiment import Experiment, Measure, Parameters
from lab.purgatories import DESIGNS

_MS = 1_000_000  # ns
_TIMEOUT = 30.0
_RATE = 1_000  # a second: one each millisecond
_WAIT = 30  # milliseconds until the key that fires does
_PAYLOAD = 100  # bytes, as in the published benchmark
_BUSY_KEYS = 100
_SLOW_KEYS = 1_000


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """1 to 100 keys an operation, purge intervals from 100 to 100,000; ours has none."""
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
    """Completes when it is told that its key has fired."""

    def __init__(self) -> None:
        super().__init__(_TIMEOUT)
        self.payload = bytearray(_PAYLOAD)
        self.fired = False

    def try_complete(self) -> bool:
        """As `DelayedOperation.try_complete`."""
        return self.fired and self.force_complete()


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Once for the time, once more for the memory, which slows things down."""
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


EXPERIMENT = Experiment("purge", "What forgetting late costs", "virtual", grid, measure)
