"""The garbage collector may start inside any operation of a timer, and run a finaliser that uses that timer.

Where an operation allocates, CPython up to 3.11 may collect on the spot; a `__del__` or a weak reference's callback
is then user code in the middle of it. These tests collect at every allocation there is, one after another, and let
the "finaliser" (a hook of the collector, which serves as well) do its worst.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from typing import Any

import pytest

from abeyant import ManualTimer, SystemTimer, TimerClosedError, TimerTask
from collecting import collecting
from seeds import with_slow
from timer.guard import join, threads_named


def nothing() -> None:
    pass


@pytest.fixture(autouse=True)
def few_objects() -> None:
    """Hide all other objects from the collector, for the tests call for very many collections."""
    gc.collect()
    gc.freeze()


@pytest.mark.skipif("t" in sys.abiflags, reason="a free-threaded interpreter collects when it has time to")
def test_the_collector_is_made_to_run_at_every_allocation() -> None:
    kept: list[object] = []
    with collecting(3, lambda: kept.append("third")) as count:
        kept += [[], [], []]
        while len(kept) < 10:
            kept.append([])
    assert "third" in kept
    assert count[0] >= 5


# The first room is 256 slots, the sentinels of two or three wheels of 64 included, and 64 queued buckets: the counts
# go from just before to just after either is full. A task far away needs new wheels on top of that, and one that is
# overdue goes into a heap of its own.
@pytest.mark.parametrize("delay", [-1.0, 5e-9, 70.0])
@pytest.mark.parametrize("apart", with_slow([13e-9, 64e-9], [64e-9]))
@pytest.mark.parametrize("action", ["start", "cancel", "refresh"])
def test_a_finaliser_may_use_a_timer_that_is_just_growing(action: str, apart: float, delay: float) -> None:
    for pending in (*range(59, 67), *range(123, 129)):
        collection = 0
        while True:
            collection += 1
            timer = ManualTimer(wheel_size=64)
            tasks = [timer.call_later(number * apart, nothing) for number in range(pending)]
            expected = pending + 1
            extra: list[TimerTask] = []

            def finaliser(timer: ManualTimer = timer, tasks: Any = tasks, extra: Any = extra) -> None:
                if action == "start":
                    extra.extend(timer.call_later(1e-7 * number**3, nothing) for number in range(70))
                elif action == "cancel":
                    assert all(task.cancel() for task in tasks[::3])
                else:
                    assert all(task.refresh() for task in tasks[::3])

            with collecting(collection, finaliser) as count:
                timer.call_later(delay, nothing)
            if count[0] < collection:
                break  # the operation has no more allocations than that
            if action == "start":
                expected += len(extra)
                assert len(extra) == 70
            elif action == "cancel":
                expected -= len(tasks[::3])
            assert len(timer) == expected, f"{pending} pending, collection {collection}"
            assert timer.advance(1e6) == expected, f"{pending} pending, collection {collection}"
            assert timer.next_expiration() is None


@pytest.mark.parametrize("action", ["cancel", "refresh"])
def test_t9_a_finaliser_may_use_a_timer_that_is_just_closing(action: str) -> None:
    collection = 0
    while True:
        collection += 1
        timer = ManualTimer(wheel_size=4)
        tasks = [timer.call_later(number % 17 * 1e-9 + 70e-9, nothing) for number in range(10)]
        timer.advance(60e-9)
        cancelled: list[bool] = []

        def finaliser(tasks: Any = tasks, cancelled: Any = cancelled) -> None:
            for task in tasks[::2]:
                if action == "cancel":
                    cancelled.append(task.cancel())
                else:
                    task.refresh()

        with collecting(collection, finaliser) as count:
            pending = timer.close()
        if count[0] < collection:
            break
        assert len(timer) == 0
        assert len(pending) + sum(cancelled) == 10, "each was handed back or cancelled, and not both"


@pytest.mark.parametrize("action", ["start", "refresh"])
def test_t9_a_finaliser_may_close_a_timer_as_it_gets_an_overdue_task(action: str) -> None:
    # Or let another thread do so, where it gives up the interpreter's lock.
    collection = 0
    while True:
        collection += 1
        timer = ManualTimer()
        timer.call_at(5, nothing)
        timer.advance(5)
        tasks = [timer.call_at(1, nothing)] if action == "refresh" else []
        drained: list[object] = []
        with collecting(collection, lambda timer=timer, drained=drained: drained.extend(timer.close())) as count:  # type: ignore[misc]
            kept: list[object] = []
            for _ in range(9):  # so that the interpreter has no such tuple left, and collects at the next one it makes
                kept.append((kept, kept, kept))
            try:
                if action == "start":
                    tasks.append(timer.call_at(1, nothing))
                else:
                    tasks[0].refresh()  # to a second after the start once more
            except TimerClosedError:
                pass
        if count[0] < collection:
            break
        del kept
        assert len(drained) == len(tasks), "each that was taken is handed back"
        assert len(timer) == 0
    assert collection > 1


def test_a_finaliser_may_use_a_timer_whose_thread_is_just_starting() -> None:
    collection = 0
    more = True

    def start_and_close() -> None:
        nonlocal more
        timer = SystemTimer("starting")
        extra: list[TimerTask] = []
        with collecting(collection, lambda: extra.append(timer.call_later(3600, nothing))) as count:
            timer.call_later(3600, nothing)
        more = count[0] >= collection
        assert len(threads_named("starting-timer")) == 1
        assert len(timer.close()) == 1 + len(extra)

    while more:
        collection += 1
        starter = threading.Thread(target=start_and_close, daemon=True)
        starter.start()
        join(starter)


@pytest.mark.parametrize("make", [ManualTimer, SystemTimer])
def test_no_deadlock_when_a_finaliser_cancels_while_the_timer_is_in_use(make: Any) -> None:
    timer = make()
    rng = random.Random(1)
    pending: list[TimerTask] = []
    cancelled = 0

    class Owner:
        """In a cycle with itself, so that only the collector can free it; cancels its task as it goes."""

        def __init__(self) -> None:
            self.itself = self
            self.task = timer.call_later(3600, nothing)

        def __del__(self) -> None:
            nonlocal cancelled
            cancelled += self.task.cancel()

    def work() -> None:
        for _ in range(3000):
            Owner()
            pending.append(timer.call_later(3600 * rng.random() + 60, nothing))
            if rng.random() < 0.5:
                pending.pop(rng.randrange(len(pending))).cancel()
            pending[-1:] and pending[-1].refresh()

    thresholds = gc.get_threshold()
    gc.set_threshold(3, 10**6, 10**6)
    try:
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        join(worker)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert cancelled == 3000
    assert len(timer) == len(pending)
    assert len(timer.close()) == len(pending)
