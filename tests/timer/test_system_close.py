"""T9: closing the timer with a thread."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
import time

import pytest

from abeyant import PendingTask, SystemTimer, TimerClosedError
from timer.guard import PATIENCE, join, threads_named, wait_for
from waiting import wait_until


def test_t9_close_hands_back_what_was_pending_in_order() -> None:
    timer = SystemTimer("closing")
    now = timer.time()
    for delay in (300, 100, 200, 100.5):
        timer.call_at(now + delay, print, delay)
    timer.call_later(float("inf"), int)
    pending = timer.close()
    assert [task.args for task in pending] == [(100,), (100.5,), (200,), (300,), ()]
    assert all(isinstance(task, PendingTask) for task in pending)
    for task, delay in zip(pending, (100, 100.5, 200, 300), strict=False):
        assert 0 <= task.deadline - (now + delay) < 0.002, "rounded up to a tick"
    assert pending[-1].deadline == float("inf")
    assert threads_named("closing-timer") == []


def test_t9_a_closed_timer_refuses_by_a_clear_error_and_stays_empty() -> None:
    timer = SystemTimer("shut")
    task = timer.call_later(100, int)
    timer.close()
    for attempt in (timer.call_later, timer.call_at):
        with pytest.raises(TimerClosedError, match=r"'shut'.* closed and cannot run .*int"):
            attempt(1, int)
    assert (len(timer), timer.closed, timer.next_expiration()) == (0, True, None)
    assert (task.cancel(), task.refresh(), task.pending, task.cancelled) == (False, False, False, False)
    assert threads_named("shut-timer") == []


def test_t9_closing_twice_or_before_the_first_task_is_fine() -> None:
    timer = SystemTimer("twice")
    assert timer.close() == []
    assert timer.close() == []
    with pytest.raises(TimerClosedError):
        timer.call_later(1, int)
    assert threads_named("twice-timer") == []


def test_t9_a_callback_may_close_the_timer() -> None:
    timer = SystemTimer("self-closing")
    pending: list[PendingTask] = []
    done = threading.Event()

    def close() -> None:
        pending.extend(timer.close())
        pending.extend(timer.close())
        done.set()

    timer.call_later(100, int)
    timer.call_later(0, close)
    wait_for(done)
    timer.close()
    assert [task.callback for task in pending] == [int]
    assert threads_named("self-closing-timer") == []


def test_t9_callbacks_may_close_each_others_timers() -> None:
    timers = [SystemTimer("one"), SystemTimer("other")]
    barrier = threading.Barrier(3)

    def close_the(other: SystemTimer) -> None:
        barrier.wait(PATIENCE)
        other.close()
        barrier.wait(PATIENCE)

    for timer, other in (timers, timers[::-1]):
        timer.call_later(0, close_the, other)
    for _ in range(2):
        barrier.wait(PATIENCE)
    for timer in timers:
        timer.close()
    assert threads_named("one-timer") == threads_named("other-timer") == []


def test_t9_close_returns_when_the_callback_that_runs_has_ended() -> None:
    timer = SystemTimer("busy")
    running, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    seen: list[bool] = []

    def callback() -> None:
        running.set()
        wait_for(go_on)
        time.sleep(0.02)
        ended.set()

    timer.call_later(0, callback)
    timer.call_later(0, seen.append, False)
    wait_for(running)

    def close() -> None:
        assert len(timer.close()) == 1
        seen.append(ended.is_set())

    closers = [threading.Thread(target=close, daemon=True)]
    closers[0].start()
    wait_until(lambda: timer.closed)
    with pytest.raises(TimerClosedError):
        timer.call_later(0, int)
    closers.append(threading.Thread(target=timer.close, daemon=True))
    closers[1].start()
    assert seen == []
    assert closers[0].is_alive()
    assert closers[1].is_alive(), "a second close waits as well"
    go_on.set()
    for closer in closers:
        join(closer)
    assert seen == [True], "and what was due behind it did not run"


def test_t9_close_in_the_middle_of_starts_from_other_threads_loses_no_task() -> None:
    for round_ in range(10):
        timer = SystemTimer(f"race {round_}")
        ran: list[int] = []
        accepted: list[int] = []
        barrier = threading.Barrier(4)

        def work(
            timer: SystemTimer = timer,
            ran: list[int] = ran,
            accepted: list[int] = accepted,
            barrier: threading.Barrier = barrier,
        ) -> None:
            barrier.wait(PATIENCE)
            try:
                for number in range(10_000):
                    timer.call_later(0.0005 * (number % 5), ran.append, 1)
                    accepted.append(1)
            except TimerClosedError:
                pass

        workers = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for worker in workers:
            worker.start()
        barrier.wait(PATIENCE)
        time.sleep(0.002)
        pending = timer.close()
        for worker in workers:
            join(worker)
        assert len(ran) + len(pending) == len(accepted)
        assert len(timer) == 0


def test_t9_a_with_block_closes_even_when_it_is_left_by_an_error() -> None:
    timer = SystemTimer("scoped")
    timer.call_later(100, int)
    with pytest.raises(ZeroDivisionError), timer:
        _ = 1 / 0
    assert timer.closed
    assert threads_named("scoped-timer") == []


SHUTTING_DOWN = """
import abeyant, threading

class Owner:
    def __init__(self):
        self.itself = self
        self.timer = abeyant.SystemTimer("owned")
        running = threading.Event()
        self.timer.call_later(0, running.set)
        self.timer.call_later(3600, int)
        assert running.wait(30)

    def __del__(self):
        print(len(self.timer.close()), self.timer.closed, flush=True)

owner = Owner()
"""


def test_close_in_a_finaliser_at_the_interpreters_end_returns() -> None:
    ran = subprocess.run([sys.executable, "-c", SHUTTING_DOWN], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stderr, ran.returncode) == ("", 0)
    # With a thread alive, a free-threaded interpreter ends without finalising what is in a cycle.
    assert ran.stdout == "1 True\n" or (ran.stdout == "" and sysconfig.get_config_var("Py_GIL_DISABLED"))
