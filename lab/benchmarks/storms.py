"""Measure storms: many expiries at once, and the longest stall of the caller's thread."""

from __future__ import annotations

import random
import time

from lab.benchmarks.effort import Effort
from lab.benchmarks.filling import Delays, fill
from lab.benchmarks.measurement import Sample, Steps
from lab.benchmarks.rounds import Rounds, clock
from lab.peers.rival import Rival, noop

PER_LOOK = 100  # the caller's operations between two reads of the clock
YEAR = 365.0 * 86_400
SHARE = 0.25  # of the time limit: rounds of a million take seconds each, and three suffice
_SOONEST = 0.002  # seconds: Kafka runs what is due within a tick from inside the start
_MARGIN = 0.01  # seconds that the mark's deadline follows all others by, more than a tick


class Mark:
    """The last callback of a storm of expiries: it records when it ran."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self) -> None:
        """Record the time."""
        self.at = clock()

    def has_run(self) -> bool:
        """Return whether this callback has run, so that the storm is over."""
        return self.at != 0


class Gaps:
    """Recorder of the longest time between two reads of the clock."""

    def __init__(self) -> None:
        self.longest = 0
        self._last = clock()

    def look(self) -> None:
        """Read the clock, and record the time since the last read if it is the longest."""
        now = clock()
        self.longest = max(self.longest, now - self._last)
        self._last = now


def expiry(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the ns of one expiry, callback included, while the driver has nothing else to do."""
    yield from _expiries(rival, min(size, 1_000))  # warm up
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    while rounds_left.another():
        spent = yield from _expiries(rival, size)
        rounds.append(spent / size)
    return Sample(rounds, size)


def _expiries(rival: Rival, size: int) -> Steps[int]:
    mark = _all_due(rival, size, spread=min(0.5, size * 4e-6))
    began = clock()
    rival.release()
    yield mark.has_run
    return mark.at - began


def _all_due(rival: Rival, size: int, spread: float) -> Mark:
    """Start `size` timers with deadlines over `spread` seconds; let all become due, without a turn for the driver."""
    delays = Delays(rival, _SOONEST, _SOONEST + spread)
    mark = Mark()
    rival.hold()
    for part in delays.parts(size):
        rival.start_forgotten(part)
    rival.start(_SOONEST + spread + _MARGIN, mark)
    rival.pass_time(_SOONEST + spread + 2 * _MARGIN)
    return mark


def jump(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the ns in which a virtual clock jumps by a year, past `size` timers."""
    yield None
    jumps = min(15, effort.most)  # a clock covers 146 years
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    while rounds_left.another():
        spent = 0
        for _ in range(jumps):
            for number in range(size):
                rival.start((number + 1) / (size + 1) * YEAR, noop)
            rival.pass_time(YEAR)
            began = clock()
            rival.turn()
            spent += clock() - began
        rounds.append(spent / jumps)
    return Sample(rounds, jumps)


def stall_expiry(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the longest stall of the caller's thread while `size` timers expire together."""
    [one] = Delays(rival).parts(1)
    rounds: list[float] = []
    rounds_left = Rounds(effort, SHARE)
    while rounds_left.another():
        mark = _all_due(rival, size, spread=0.0)
        gaps = Gaps()
        rival.release()
        while not mark.has_run():
            rival.pair(one)
            yield None
            gaps.look()
        rounds.append(gaps.longest)
    return Sample(rounds, size)


def stall_start(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the longest stall of the caller's thread while it starts `size` timers."""
    delays = Delays(rival)
    rounds: list[float] = []
    rounds_left = Rounds(effort, SHARE)
    while rounds_left.another():
        started = []
        gaps = Gaps()
        for part in delays.parts(size):
            for begin in range(0, len(part), PER_LOOK):
                started.append(rival.start_all(part[begin : begin + PER_LOOK]))
                gaps.look()
            yield None
            gaps.look()
        rounds.append(gaps.longest)
        for handles in started:
            rival.stop_all(handles)
            yield None
    return Sample(rounds, size)


def stall_stop(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure the longest stall of the caller's thread while it stops `size` timers in random order."""
    delays = Delays(rival)
    source = random.Random(3)
    rounds: list[float] = []
    rounds_left = Rounds(effort, SHARE)
    while rounds_left.another():
        started = yield from fill(rival, size, delays)
        source.shuffle(started)
        gaps = Gaps()
        for begin in range(0, size, PER_LOOK):
            rival.stop_all(started[begin : begin + PER_LOOK])
            yield None
            gaps.look()
        rounds.append(gaps.longest)
    return Sample(rounds, size)


def lateness(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Measure by how many ns `size` timers on the real clock run late. One round."""
    count, seconds = effort.lateness
    count = min(size, count)
    source = random.Random(4)
    now = time.monotonic_ns
    late: list[int] = []

    def ran(deadline: int) -> None:
        late.append(now() - deadline)

    # The first deadline is after the last start.
    ahead = seconds / 10
    for number in range(count):
        delay = source.uniform(ahead, ahead + seconds)
        rival.start(delay, ran, now() + round(delay * 1e9))
        if number % PER_LOOK == 0:
            yield None  # uvloop counts from the beginning of the loop's iteration
    yield lambda: len(late) == count
    late.sort()
    return Sample([float(late[count // 2])], count, {"late": _thinned(late)})


def _thinned(ordered: list[int], keep: int = 2_000) -> list[float]:
    """Return evenly spaced quantiles of a sorted list, both ends included."""
    last = len(ordered) - 1
    return [float(ordered[round(step * last / (keep - 1))]) for step in range(keep)]
