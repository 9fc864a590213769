"""Measure the memory of pending timers, and the garbage collector's time for them."""

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
    """Return this process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def memory(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure bytes per pending timer whose handle is kept; the list of handles is allocated beforehand."""
    del effort
    delays = Delays(rival)
    yield from _warm_up(rival, size, delays)
    handles = [None] * size
    begin = 0
    before = resident()
    for part in delays.parts(size):
        handles[begin : begin + len(part)] = rival.start_all(part)
        begin += len(part)
        yield None
    grown = resident() - before
    del handles
    return Sample([grown / size], size)


def memory_forgotten(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure bytes per pending timer whose handle is dropped."""
    del effort
    delays = Delays(rival)
    yield from _warm_up(rival, size, delays)
    before = resident()
    yield from fill_forgotten(rival, size, delays)
    return Sample([(resident() - before) / size], size)


def _warm_up(rival: Rival, size: int, delays: Delays) -> Steps[None]:
    handles = yield from fill(rival, min(size, 100), delays)
    rival.stop_all(handles)
    gc.collect()


def collection(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure a full garbage collection in ns, with pending timers whose handles are kept."""
    delays = Delays(rival)
    bare = _collections(effort)
    handles = yield from fill(rival, size, delays)
    full = _collections(effort)
    del handles
    return _deduct(full, bare)


def collection_forgotten(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure a full garbage collection in ns, with pending timers whose handles are dropped."""
    delays = Delays(rival)
    bare = _collections(effort)
    yield from fill_forgotten(rival, size, delays)
    return _deduct(_collections(effort), bare)


def _collections(effort: Effort) -> list[float]:
    gc.collect()
    spent = []
    for _ in range(effort.rounds):
        began = clock()
        gc.collect()
        spent.append(float(clock() - began))
    return spent


def _deduct(full: list[float], bare: list[float]) -> Sample:
    deducted = statistics.median(bare)
    return Sample([max(0.0, figure - deducted) for figure in full], 1, {"empty": bare})
