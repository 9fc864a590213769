"""Measure the cost of start, stop, refresh and next expiration with n pending timers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from lab.benchmarks.effort import Effort
from lab.benchmarks.filling import CHUNK, Delays, fill, fill_forgotten
from lab.benchmarks.measurement import Sample, Steps
from lab.benchmarks.rounds import Part, cost
from lab.peers.rival import Handle, Rival, noop


def pair(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the cost of starting a timer and stopping it at once."""
    delays = Delays(rival)
    handles = yield from fill(rival, size, delays)
    sample = yield from cost(effort, lambda count: list(delays.parts(count)), rival.pair, _walk)
    del handles
    return sample


def start(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the cost of starting a timer whose handle is kept."""
    delays = Delays(rival)
    handles = yield from fill(rival, size, delays)

    def stop_them(results: list[list[Handle]]) -> None:
        for handles in results:
            rival.stop_all(handles)

    sample = yield from cost(effort, lambda count: list(delays.parts(count)), rival.start_all, _collect, stop_them)
    del handles
    return sample


def start_forgotten(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the cost of starting a timer whose handle is dropped.

    Started timers stay pending, so n grows a little each round.
    """
    delays = Delays(rival)
    yield from fill_forgotten(rival, size, delays)
    return (yield from cost(effort, lambda count: list(delays.parts(count)), rival.start_forgotten, _walk))


def stop(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the cost of stopping timers in random order; stopped timers are restarted between rounds."""
    delays = Delays(rival)
    handles = yield from fill(rival, size, delays)
    source = random.Random(2)
    picked: list[int] = []

    def make(count: int) -> list[Part]:
        picked[:] = source.sample(range(size), min(count, size))
        return [[handles[index] for index in part] for part in _cut(picked)]

    def restart(_: list[Any]) -> None:
        places = iter(picked)
        for part in delays.parts(len(picked)):
            for handle in rival.start_all(part):
                handles[next(places)] = handle

    return (yield from cost(effort, make, rival.stop_all, _walk, restart))


def refresh(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the cost of refreshing timers in random order."""
    delays = Delays(rival)
    handles = yield from fill(rival, size, delays)
    source = random.Random(2)
    [[delay]] = delays.parts(1)

    def make(count: int) -> list[Part]:
        return _cut(source.sample(range(size), min(count, size)))

    def walk(order: Sequence[int]) -> None:
        for index in order:
            handles[index]

    return (yield from cost(effort, make, lambda order: rival.refresh_all(handles, order, delay), walk))


def next_expiration(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the cost of asking for the next expiration."""
    handles = yield from fill(rival, size, Delays(rival))
    sample = yield from cost(effort, lambda count: _cut(range(count)), rival.ask_next, _walk)
    del handles
    return sample


def _cut(work: Sequence[int]) -> list[Part]:
    return [work[begin : begin + CHUNK] for begin in range(0, len(work), CHUNK)]


def _walk(part: Part) -> None:
    for _ in part:
        pass


def _collect(part: Part) -> list[Any]:
    return [noop for _ in part]
