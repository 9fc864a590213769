"""What pending timers weigh: memory, and the garbage collector's work."""

from __future__ import annotations

import gc
import statistics
from pathlib import Path

from lab.benchmarks.effort import Effort
from lab.benchmarks.filling import Delays, fill, fill_forgotten
from lab.benchmarks.measurement import Sample, Steps
from lab.benchmarks.rounds import clock
from lab.peers.rival import Rival

_PAGE = 4096


def resident() -> int:
    """This process' resident memory, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def memory(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Bytes a pending timer, the handles kept. The list of handles is there before."""
    del effort
    delays = Delays(rival)
    yield from _warm_up(rival, size, delays)
    held = [None] * size
    begin = 0
    before = resident()
    for part in delays.parts(size):
        held[begin : begin + len(part)] = rival.start_all(part)
        begin += len(part)
        yield None
    grown = resident() - before
    del held
    return Sample([grown / size], size)


def memory_forgotten(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Bytes a pending timer, the handles dropped."""
    del effort
    delays = Delays(rival)
    yield from _warm_up(rival, size, delays)
    before = resident()
    yield from fill_forgotten(rival, size, delays)
    return Sample([(resident() - before) / size], size)


def _warm_up(rival: Rival, size: int, delays: Delays) -> Steps[None]:
    held = yield from fill(rival, min(size, 100), delays)
    rival.stop_all(held)
    gc.collect()


def collection(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Nanoseconds of a full collection, the handles kept."""
    delays = Delays(rival)
    bare = _collections(effort)
    held = yield from fill(rival, size, delays)
    full = _collections(effort)
    del held
    return _less(full, bare)


def collection_forgotten(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Nanoseconds of a full collection, the handles dropped."""
    delays = Delays(rival)
    bare = _collections(effort)
    yield from fill_forgotten(rival, size, delays)
    return _less(_collections(effort), bare)


def _collections(effort: Effort) -> list[float]:
    gc.collect()
    spent = []
    for _ in range(effort.rounds):
        began = clock()
        gc.collect()
        spent.append(float(clock() - began))
    return spent


def _less(full: list[float], bare: list[float]) -> Sample:
    deducted = statistics.median(bare)
    return Sample([max(0.0, figure - deducted) for figure in full], 1, {"empty": bare})
