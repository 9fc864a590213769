"""Storms: many expiries at once, and how long the caller's thread stands still in one."""

from __future__ import annotations

import random
import time

from lab.benchmarks.effort import Effort
from lab.benchmarks.filling import Delays, fill
from lab.benchmarks.measurement import Sample, Steps
from lab.benchmarks.rounds import Patience, clock
from lab.peers.rival import Rival, noop

A_BEAT = 100  # operations of the caller between two looks at the clock
A_YEAR = 365.0 * 86_400
SHARE = 0.25  # of the patience: rounds of a million take seconds each, and three tell
_SOONEST = 0.002  # seconds: Kafka runs what is due within a tick from inside the start
_MARGIN = 0.01  # seconds: the mark's deadline is behind all others by this much, more than a tick


class Mark:
    """The last callback of a storm: notes when it ran."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self) -> None:
        """Be the callback."""
        self.at = clock()

    def has_run(self) -> bool:
        """Whether the storm is over."""
        return self.at != 0


class Gaps:
    """The longest time between two looks at the clock."""

    def __init__(self) -> None:
        self.longest = 0
        self._last = clock()

    def look(self) -> None:
        """Look at the clock."""
        now = clock()
        self.longest = max(self.longest, now - self._last)
        self._last = now


def expiry(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """What an expiry costs, its callback included, when the driver has nothing else to do."""
    yield from _expiries(rival, min(size, 1_000))  # warm up
    rounds: list[float] = []
    patience = Patience(effort)
    while patience.another():
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
    """Start `size` timers, their deadlines spread over so many seconds; let all come due without a turn."""
    delays = Delays(rival, _SOONEST, _SOONEST + spread)
    mark = Mark()
    rival.hold()
    for part in delays.parts(size):
        rival.start_forgotten(part)
    rival.start(_SOONEST + spread + _MARGIN, mark)
    rival.pass_time(_SOONEST + spread + 2 * _MARGIN)
    return mark


def jump(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """Nanoseconds for a year to pass at once, with `size` timers that run on the way. For virtual clocks."""
    yield None
    jumps = min(15, effort.most)  # a clock lasts for 146 years
    rounds: list[float] = []
    patience = Patience(effort)
    while patience.another():
        spent = 0
        for _ in range(jumps):
            for number in range(size):
                rival.start((number + 1) / (size + 1) * A_YEAR, noop)
            rival.pass_time(A_YEAR)
            began = clock()
            rival.turn()
            spent += clock() - began
        rounds.append(spent / jumps)
    return Sample(rounds, jumps)


def stall_expiry(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """The caller's longest gap while `size` timers that came due together run."""
    [one] = Delays(rival).parts(1)
    rounds: list[float] = []
    patience = Patience(effort, SHARE)
    while patience.another():
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
    """The caller's longest gap while it starts `size` timers."""
    delays = Delays(rival)
    rounds: list[float] = []
    patience = Patience(effort, SHARE)
    while patience.another():
        held = []
        gaps = Gaps()
        for part in delays.parts(size):
            for begin in range(0, len(part), A_BEAT):
                held.append(rival.start_all(part[begin : begin + A_BEAT]))
                gaps.look()
            yield None
            gaps.look()
        rounds.append(gaps.longest)
        for handles in held:
            rival.stop_all(handles)
            yield None
    return Sample(rounds, size)


def stall_stop(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """The caller's longest gap while it stops `size` timers in random order."""
    delays = Delays(rival)
    source = random.Random(3)
    rounds: list[float] = []
    patience = Patience(effort, SHARE)
    while patience.another():
        held = yield from fill(rival, size, delays)
        source.shuffle(held)
        gaps = Gaps()
        for begin in range(0, size, A_BEAT):
            rival.stop_all(held[begin : begin + A_BEAT])
            yield None
            gaps.look()
        rounds.append(gaps.longest)
    return Sample(rounds, size)


def lateness(rival: Rival, size: int, effort: Effort) -> Steps[Sample]:
    """When each of `size` real-clock timers ran, less its deadline, in nanoseconds. One round."""
    count, seconds = effort.lateness
    count = min(size, count)
    source = random.Random(4)
    now = time.monotonic_ns
    late: list[int] = []

    def ran(deadline: int) -> None:
        late.append(now() - deadline)

    # They begin to come due when all of them have been started.
    ahead = seconds / 10
    for number in range(count):
        delay = source.uniform(ahead, ahead + seconds)
        rival.start(delay, ran, now() + round(delay * 1e9))
        if number % A_BEAT == 0:
            yield None  # uvloop counts from the beginning of the loop's iteration
    yield lambda: len(late) == count
    late.sort()
    return Sample([float(late[count // 2])], count, {"late": _thinned(late)})


def _thinned(ordered: list[int], keep: int = 2_000) -> list[float]:
    """A sorted list's quantiles, at even distances, both ends included."""
    last = len(ordered) - 1
    return [float(ordered[round(step * last / (keep - 1))]) for step in range(keep)]
