"""Measure the purgatory: the cost of watching and completing operations."""

from __future__ import annotations

import time
from collections.abc import Callable

from abeyant import SystemTimer
from abeyant.purgatory import DelayedOperation, Purgatory
from lab.benchmarks.effort import Effort
from lab.benchmarks.measurement import Sample
from lab.benchmarks.rounds import Rounds, clock

KEYS = [f"orders-{number}" for number in range(1_000)]
OTHER_KEYS = [f"payments-{number}" for number in range(1_000)]
TIMEOUT = 200.0  # seconds: nothing expires while anything is measured
SHORT = 0.2  # of the enqueue benchmark


class Waiting(DelayedOperation):
    """An operation whose condition is one flag."""

    __slots__ = ("ready",)

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.ready = False

    def try_complete(self) -> bool:
        """Complete if `ready` is set, by the contract of Kafka's `tryComplete`."""
        return self.ready and self.force_complete()


def watch(size: int, effort: Effort) -> Sample:
    """Measure the ns of one operation on one key, from its construction to its completion."""
    with SystemTimer("benchmark") as timer:
        purgatory = _purgatory(timer, size)
        submit, check = purgatory.try_complete_else_watch, purgatory.check_and_complete

        def spend(count: int) -> int:
            keys = _keys(count)
            began = clock()
            for key in keys:
                operation = Waiting(TIMEOUT)
                submit(operation, (key,))
                operation.ready = True
                check(key)
            spent = clock() - began
            began = clock()
            for _ in keys:
                pass
            return spent - (clock() - began)

        sample = _rounds(effort, spend)
        purgatory.close("cancel")
    return sample


def watch_made(size: int, effort: Effort) -> Sample:
    """Measure the ns of one operation on one key from its submission on, with operations constructed beforehand."""
    with SystemTimer("benchmark") as timer:
        purgatory = _purgatory(timer, size)
        submit, check = purgatory.try_complete_else_watch, purgatory.check_and_complete

        def spend(count: int) -> int:
            work = [(Waiting(TIMEOUT), key) for key in _keys(count)]
            began = clock()
            for operation, key in work:
                submit(operation, (key,))
                operation.ready = True
                check(key)
            spent = clock() - began
            began = clock()
            for operation, key in work:  # noqa: B007  the empty loop
                pass
            return spent - (clock() - began)

        sample = _rounds(effort, spend)
        purgatory.close("cancel")
    return sample


def watch_keys(size: int, effort: Effort) -> Sample:
    """Measure the ns per key of operations that watch `size` keys each."""
    with SystemTimer("benchmark") as timer:
        purgatory: Purgatory[Waiting] = Purgatory("benchmark", timer)
        keys = [f"key-{number}" for number in range(size)]

        def spend(count: int) -> int:
            operations = max(1, count // size)
            began = clock()
            for _ in range(operations):
                operation = Waiting(TIMEOUT)
                purgatory.try_complete_else_watch(operation, keys)
                operation.ready = True
                purgatory.check_and_complete(keys[0])
            return (clock() - began) * count // (operations * size)

        return _rounds(effort, spend)


def watch_hot(size: int, effort: Effort) -> Sample:
    """Measure the ns per operation of `size` operations on one key, which one check completes."""
    with SystemTimer("benchmark") as timer:
        purgatory: Purgatory[Waiting] = Purgatory("benchmark", timer)
        rounds: list[float] = []
        rounds_left = Rounds(effort)
        while rounds_left.another():
            began = clock()
            operations = [Waiting(TIMEOUT) for _ in range(size)]
            for operation in operations:
                purgatory.try_complete_else_watch(operation, ("hot",))
            for operation in operations:
                operation.ready = True
            completed = purgatory.check_and_complete("hot")
            spent = clock() - began
            if completed != size:
                raise RuntimeError(f"one check completed {completed:,} of {size:,} operations on its key")
            rounds.append(spent / size)
    return Sample(rounds, size)


def enqueue(size: int, effort: Effort) -> Sample:
    """Measure operations per second, from the first submission to the last expiry, less the time-out; and CPU time."""
    size = min(size, effort.enqueue)
    rounds: list[float] = []
    cpu: list[float] = []
    with SystemTimer("benchmark") as timer:
        purgatory: Purgatory[Waiting] = Purgatory("benchmark", timer)
        rounds_left = Rounds(effort)
        while rounds_left.another():
            before = time.process_time_ns()
            began = clock()
            for number in range(size):
                purgatory.try_complete_else_watch(Waiting(SHORT), (KEYS[number % len(KEYS)],))
            while purgatory.delayed:
                time.sleep(0.001)
            spent = clock() - began
            cpu.append((time.process_time_ns() - before) / size)
            rounds.append(size / (spent - round(SHORT * 1e9)) * 1e9)
    return Sample(rounds, size, {"cpu": cpu})


def _purgatory(timer: SystemTimer, size: int) -> Purgatory[Waiting]:
    """Return a purgatory in which `size` operations wait on keys that are not measured."""
    purgatory: Purgatory[Waiting] = Purgatory("benchmark", timer)
    for number in range(size):
        purgatory.try_complete_else_watch(Waiting(TIMEOUT), (OTHER_KEYS[number % len(OTHER_KEYS)],))
    return purgatory


def _keys(count: int) -> list[str]:
    return (KEYS * (count // len(KEYS) + 1))[:count]


def _rounds(effort: Effort, spend: Callable[[int], int]) -> Sample:
    """Measure rounds of as many operations as fit; `spend(count)` does `count` operations and returns the ns."""
    count = min(1_000, effort.most)
    spend(count)
    spent = spend(count)
    count = max(count, min(effort.most, round(effort.seconds * 1e9 / max(spent, 1)) * count))
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    while rounds_left.another():
        rounds.append(spend(count) / count)
    return Sample(rounds, count)
