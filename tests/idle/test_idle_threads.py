"""Packets and expiry race in real threads; the collector strikes at any allocation. Each silence is told of once."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from abeyant import IdleDetector, ManualTimer, SystemTimer
from collecting import collecting
from seeds import with_slow
from timer.guard import join
from waiting import wait_until


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


class Name:
    """Hash and comparison are Python code, in whose middle threads are switched; only some share a hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number % 10

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and other.number == self.number


@pytest.mark.parametrize("kind", [int, Name])
@pytest.mark.parametrize("pool", [0, 3])
def test_t3_packets_race_with_expiry_and_forgetting_and_each_silence_ends_once(kind: type, pool: int) -> None:
    told: Counter[int] = Counter()
    lock = threading.Lock()
    forgotten: list[int] = []
    executor = ThreadPoolExecutor(pool) if pool else None

    def drop(peer: int | Name) -> None:
        with lock:
            told[peer if isinstance(peer, int) else peer.number] += 1

    with SystemTimer(tick=0.0005, executor=executor) as timer:
        idle = IdleDetector(0.002, drop, timer)

        def work(seed: int) -> None:
            rng = random.Random(seed)
            prevented = 0
            for _ in range(2500):
                if rng.random() < 0.1:
                    prevented += idle.forget(kind(rng.randrange(40)))
                else:
                    idle.seen(kind(rng.randrange(40)))
                if rng.random() < 0.02:
                    time.sleep(0.003)
            forgotten.append(prevented)

        workers = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            join(worker)
        wait_until(lambda: len(idle) == 0)
        if executor is not None:
            executor.shutdown()  # waits for the last turn
        wait_until(lambda: len(timer) == 0)
        idle._check()
        counts = idle.stats()
    assert told.total() == counts.expired == counts.started - sum(forgotten)
    assert counts.forgotten == sum(forgotten)
    assert counts.expired > 0


def test_t1_who_is_seen_all_the_time_from_several_threads_is_never_dropped() -> None:
    """The clock is read before the lock is taken: a thread that reads it and is held up must not turn time back."""
    told: list[int] = []
    timer = ManualTimer()
    idle = IdleDetector(1.0, told.append, timer)
    stop = threading.Event()

    def packets() -> None:
        while not stop.is_set():
            for peer in range(5):
                idle.seen(peer)

    workers = [threading.Thread(target=packets, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(300):
        for peer in range(5):
            idle.seen(peer)
        timer.advance(0.999)
    stop.set()
    for worker in workers:
        join(worker)
    assert told == []
    timer.advance(1)
    assert sorted(told) == list(range(5))


@pytest.mark.parametrize("action", ["seen", "seen and forgotten", "forget", "close"])
@pytest.mark.parametrize("watched", with_slow([0, 1, 63, 64, 65, 120, 127, 128, 250], [1, 63, 64, 120, 127, 250]))
def test_a_finaliser_may_use_a_detector_in_the_middle_of_anything(action: str, watched: int) -> None:
    """The sizes are those at which the chains widen, and the slots, those of two or three wheels among them, grow."""
    gc.collect()
    gc.freeze()
    at = 0
    more = True
    while more:
        at += 1
        timer = ManualTimer(wheel_size=16)
        idle = IdleDetector(30, lambda _: None, timer)
        for peer in range(watched):
            idle.seen(peer)

        def finaliser(idle: IdleDetector = idle) -> None:
            if not idle.closed:
                idle.seen("finaliser")
            idle.forget(0)
            if action == "seen and forgotten":
                idle.forget("new")
                idle.forget("finaliser")

        with collecting(at, finaliser) as count:
            if action.startswith("seen"):
                idle.seen("new")
            elif action == "forget":
                idle.forget(watched - 1)
            else:
                idle.close()
        more = count[0] >= at
        idle._check()
        assert len(timer) == bool(len(idle))
        timer.advance(100)
        assert len(idle) == len(timer) == 0
