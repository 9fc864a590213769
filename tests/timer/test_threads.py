"""T3 and T9 with real threads: each starts, refreshes and cancels its own tasks and others', and counts every end."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from abeyant.timer import SystemTimer, TimerTask

THREADS = 4
SECONDS = 2.0
DELAYS = (0.0, 0.001, 0.003, 0.01, 5.0)


class Worker:
    """Starts tasks and ends most of them; `tasks` is shared by all workers, and so are the races for them."""

    def __init__(self, timer: SystemTimer, tasks: list[TimerTask], seed: int) -> None:
        self.timer = timer
        self.tasks = tasks
        self.rng = random.Random(seed)
        self.count: Counter[str] = Counter()
        self.ran = 0  # counted in the timer's thread only

    def run(self) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for _ in range(100):
                self.step()
            while len(self.tasks) > 1_000:
                self.end_one()

    def step(self) -> None:
        choice = self.rng.random()
        if choice < 0.5:
            self.tasks.append(self.timer.call_later(self.rng.choice(DELAYS), self.fire))
            self.count["started"] += 1
        elif choice < 0.8:
            self.end_one()
        else:
            task = self.any_task()
            if task is not None:
                task.refresh()

    def end_one(self) -> None:
        task = self.any_task()
        if task is not None and task.cancel():  # it stays on the list, so several threads cancel one
            self.count["cancelled"] += 1
        if task is not None and self.rng.random() < 0.7:
            try:
                self.tasks.remove(task)
            except ValueError:
                self.count["met"] += 1

    def any_task(self) -> TimerTask | None:
        try:
            return self.tasks[self.rng.randrange(max(1, len(self.tasks)))]
        except IndexError:  # the list has become shorter meanwhile
            return None

    def fire(self) -> None:
        self.ran += 1


def test_every_task_runs_once_or_is_cancelled_whatever_threads_do_t3_t9() -> None:
    tasks: list[TimerTask] = []
    with SystemTimer("threads") as timer:
        workers = [Worker(timer, tasks, seed) for seed in range(THREADS)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        left = timer.close()
    started = sum(worker.count["started"] for worker in workers)
    cancelled = sum(worker.count["cancelled"] for worker in workers)
    ran = sum(worker.ran for worker in workers)
    assert started == cancelled + ran + len(left)
    assert ran > 0
    assert cancelled > 0
    assert len(timer) == 0
    stats = timer.stats()
    assert (stats.started, stats.expired, stats.cancelled) == (started, ran, cancelled + len(left))


@pytest.mark.skipif("t" not in sys.abiflags, reason="for a free-threaded interpreter")
def test_a_free_threaded_interpreter_stays_without_its_lock() -> None:
    """It would turn it on, with a warning, for a compiled module that does not declare itself."""
    program = "import sys, abeyant, abeyant.kernels.bulk, abeyant.kernels.replay; print(sys._is_gil_enabled())"
    command = [sys.executable, "-W", "error", "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
