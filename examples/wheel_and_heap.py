"""A small timing wheel, step by step; then timers on the wheel beside timers in a heap.

python examples/wheel_and_heap.py                 with 1,000, 10,000 and 100,000 pending
python examples/wheel_and_heap.py 500 1000000     with as many as you say

Stopping in a heap only marks the timer: the rest is paid once it would have been due. "In all" is one timer's share of
the whole. Timers are stopped in random order: what grows there is what the processor's caches miss, not steps. The heap
is Python around heapq, and grows dearer with its lists, one a timer: memory, and the collector, which looks at each.
The wheel makes none.
"""

from __future__ import annotations

import heapq
import itertools
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import abeyant
from abeyant.engine import TimingWheel

PENDING = (1_000, 10_000, 100_000)
BUCKETS = 10


def show_a_task_travel() -> None:
    """Print in which buckets two tasks wait, due at 222 and 223; a task that is alone the wheel goes to straight."""
    wheel = TimingWheel(1, BUCKETS)
    wheel.add(222, "one")
    wheel.add(223, "another")
    for now in (0, 200, 220, 222, 223):
        due = wheel.advance(now)
        waiting = [
            f"wheel {bucket.level + 1}, bucket {bucket.index}: {', '.join(map(str, bucket.deadlines))}"
            for bucket in wheel.buckets()
        ]
        print(f"at {now:3}  {'; '.join([*waiting, *(f'due: {one}' for one in due)])}")


class Heap:
    """Timers as asyncio keeps them: a heap by deadline, in which a cancelled timer is marked, and stays."""

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []
        self._number = itertools.count()

    def start(self, delay: float) -> list[Any]:
        """O(log n) at worst, O(1) on average."""
        entry = [time.monotonic() + delay, next(self._number), print]
        heapq.heappush(self._heap, entry)
        return entry

    def stop(self, entry: list[Any]) -> None:
        """O(1) now; the entry is thrown away when it comes to the front."""
        entry[2] = None

    def run_due(self, now: float) -> None:
        """O(log n) for each that is due or was cancelled."""
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)


def measure(
    name: str,
    pending: int,
    start: Callable[[float], Any],
    stop: Callable[[Any], object],
    rest: Callable[[], object],
) -> None:
    """Print what a start and a stop take, stopped in random order, and what is left to do when time has passed."""
    delays = [random.uniform(1, 3600) for _ in range(pending)]
    times = [time.perf_counter()]
    timers = [start(delay) for delay in delays]
    times.append(time.perf_counter())
    random.shuffle(timers)
    times.append(time.perf_counter())
    for timer in timers:
        stop(timer)
    times.append(time.perf_counter())
    rest()
    times.append(time.perf_counter())
    started, _, stopped, left = (after - before for before, after in itertools.pairwise(times))
    print(
        f"{pending:>9,}  {name:5}  start {started / pending * 1e6:5.2f} µs  stop {stopped / pending * 1e6:5.2f} µs",
        end="",
    )
    print(f"  once all have been due {left * 1e3:8.1f} ms  in all {(started + stopped + left) / pending * 1e6:5.2f} µs")


def compare(pending: int) -> None:
    """Measure the wheel and the heap with so many timers pending."""
    wheel, heap = abeyant.ManualTimer(tick=0.001, wheel_size=64), Heap()

    def start(delay: float) -> abeyant.TimerTask:
        return wheel.call_later(delay, print)

    measure("wheel", pending, start, abeyant.TimerTask.cancel, lambda: wheel.advance(3600))
    measure("heap", pending, heap.start, heap.stop, lambda: heap.run_due(time.monotonic() + 3600))


if __name__ == "__main__":
    show_a_task_travel()
    print(f"\nThe wheel is {'compiled' if abeyant.engine.is_compiled() else 'interpreted'}.")
    for number in map(int, sys.argv[1:] or PENDING):
        compare(number)
    print((__doc__ or "").rpartition("\n\n")[2], end="")
