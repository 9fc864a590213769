"""`call_every`: on every timer, and on our loops, the same."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import logging
import math
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from abeyant import ManualTimer, RepeatingTask, SystemTimer, TimerClosedError, aio
from waiting import wait_until


@pytest.fixture
def timer() -> ManualTimer:
    return ManualTimer(start=100.0)


def test_it_runs_at_start_plus_n_intervals_exactly(timer: ManualTimer) -> None:
    ran: list[float] = []
    task = timer.call_every(0.1, lambda: ran.append(timer.time()))
    assert (task.interval, task.deadline, len(timer)) == (0.1, 100.1, 1)
    timer.advance(1000)
    assert len(ran) == 10_000
    for n, when in enumerate(ran, 1):
        assert abs(when - (100 + n * 0.1)) < 1e-9, "no drift"
    assert (task.missed, len(timer)) == (0, 1)


def test_arguments_reach_the_callback_and_a_timedelta_is_an_interval(timer: ManualTimer) -> None:
    ran: list[object] = []
    timer.call_every(timedelta(minutes=1), lambda *args: ran.append(args), 1, "two")
    assert timer.advance(59.9) == 0
    timer.advance(60.1)
    assert ran == [(1, "two")] * 2


def test_t3_cancel_is_true_when_it_prevented_a_run(timer: ManualTimer) -> None:
    ran: list[int] = []
    task = timer.call_every(1, ran.append, 1)
    timer.advance(2.5)
    assert task.cancel()
    assert not task.cancel()
    assert (task.cancelled, len(timer), task.refresh()) == (True, 0, False)
    timer.advance(10)
    assert ran == [1, 1]


def test_a_callback_may_cancel_and_refresh_its_own_task(timer: ManualTimer) -> None:
    ran: list[float] = []

    def work() -> None:
        ran.append(timer.time())
        if len(ran) == 2:
            timer.advance(0.25)  # what is refreshed after that is off the old grid
            assert task.refresh()
        if len(ran) == 4:
            assert task.cancel()

    task = timer.call_every(1, work)
    timer.advance(10)
    assert (ran, len(timer)) == ([101.0, 102.0, 103.25, 104.25], 0)


def test_refresh_begins_anew_from_now(timer: ManualTimer) -> None:
    ran: list[float] = []
    task = timer.call_every(10, lambda: ran.append(timer.time()))
    timer.advance(9)
    assert task.refresh()
    assert (task.deadline, len(timer)) == (119.0, 1)
    timer.advance(20)
    assert ran == [119.0, 129.0]


def test_runs_for_which_it_is_too_late_are_left_out_and_counted(timer: ManualTimer) -> None:
    """No storm: the machine slept, or a run took longer than the interval."""
    ran: list[float] = []

    def work() -> None:
        ran.append(timer.time())
        if len(ran) == 1:
            timer.advance(3.5)

    task = timer.call_every(1, work)
    timer.advance(6)
    assert (ran, task.missed) == ([101.0, 105.0, 106.0], 3)
    assert "3 missed" in repr(task)


def test_t8_what_it_raises_is_reported_and_it_goes_on() -> None:
    errors: list[tuple[BaseException, Any]] = []
    timer = ManualTimer(on_error=lambda error, callback: errors.append((error, callback)))
    task = timer.call_every(1, lambda: 1 / 0)
    timer.advance(3)
    assert [type(error) for error, _ in errors] == [ZeroDivisionError] * 3
    assert {callback for _, callback in errors} == {task}
    assert timer.stats().failed == 3


def test_an_async_function_is_refused_and_a_coroutine_reported(
    timer: ManualTimer, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        pass

    with pytest.raises(TypeError, match="callback must be a plain function"):
        timer.call_every(1, work)
    with pytest.raises(TypeError, match="callback must be callable, not None"):
        timer.call_every(1, None)  # type: ignore[arg-type]
    timer.call_every(1, lambda: work())
    with caplog.at_level(logging.ERROR):
        timer.advance(2)
    assert timer.stats().failed == 2


@pytest.mark.parametrize("interval", [0, -1, 5e-324, 1e-20, 9e-10, math.inf, math.nan, timedelta(0)])
def test_an_interval_is_at_least_what_timers_count_in(timer: ManualTimer, interval: Any) -> None:
    # Of much shorter ones, a SystemTimer's thread counted what it had missed for ever.
    with pytest.raises(ValueError, match=r"interval must be finite, and at least a nanosecond \(1e-9 s\), not "):
        timer.call_every(interval, print)
    with pytest.raises(TypeError, match="interval must be seconds"):
        timer.call_every("1", print)  # type: ignore[arg-type]
    assert len(timer) == 0


def test_t4_the_first_run_may_come_before_the_task_is_made() -> None:
    class Slow(SystemTimer):
        def call_at(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
            task = super().call_at(*args, **options)
            if threading.current_thread() is threading.main_thread():
                time.sleep(0.04)
            return task

    with Slow() as timer:
        task = timer.call_every(0.03, int)
        assert task.cancel()
        assert len(timer) == 0


def test_it_cannot_be_copied(timer: ManualTimer) -> None:
    task = timer.call_every(1, print)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled: it is the one handle of its runs"):
            duplicate(task)


def test_t9_close_hands_it_back_and_what_comes_after_is_refused(timer: ManualTimer) -> None:
    task = timer.call_every(1, print)
    [pending] = timer.close()
    assert pending.callback is task
    assert not task.cancel()
    with pytest.raises(TimerClosedError):
        timer.call_every(1, print)


def test_a_callback_may_close_the_timer(timer: ManualTimer) -> None:
    task = timer.call_every(1, timer.close)
    timer.advance(5)
    assert (task.cancelled, task.refresh(), timer.stats().failed) == (True, False, 0)


@pytest.mark.parametrize("with_executor", [False, True])
def test_t1_a_system_timer_repeats_on_the_grid_and_never_early(with_executor: bool) -> None:
    with ThreadPoolExecutor(1) as pool, SystemTimer(executor=pool if with_executor else None) as timer:
        ran: list[float] = []
        began = timer.time()
        task = timer.call_every(0.02, lambda: ran.append(timer.time()))
        wait_until(lambda: len(ran) >= 5)
        assert task.cancel()
        for n, when in enumerate(ran, 1):
            assert when >= began + n * 0.02, "T1"


def test_a_slow_callback_of_a_system_timer_makes_no_storm() -> None:
    with SystemTimer() as timer:
        ran: list[int] = []

        def work() -> None:
            ran.append(1)
            time.sleep(0.05)

        task = timer.call_every(0.01, work)
        wait_until(lambda: len(ran) >= 3)
        task.cancel()
        assert task.missed >= 6


def test_cancel_from_any_thread_holds() -> None:
    with SystemTimer() as timer:
        for _ in range(100):
            ran: list[int] = []
            task = timer.call_every(0.0001, ran.append, 1)
            wait_until(ran.__len__)
            canceller = threading.Thread(target=task.cancel)
            canceller.start()
            canceller.join()
            count = len(ran)
            time.sleep(0.001)
            assert len(ran) <= count + 1, "one may have begun"
            assert len(timer) == 0


where: contextvars.ContextVar[str] = contextvars.ContextVar("where")
MAKERS: dict[str, Callable[[], Any]] = {"aio.Timer": aio.Timer, "loop": asyncio.get_running_loop}


@pytest.mark.parametrize("what", MAKERS)
def test_in_asyncio_it_runs_in_one_context_and_in_virtual_time_exactly(what: str) -> None:
    ran: list[tuple[float, str]] = []

    async def main() -> None:
        loop, failures = asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
        where.set("here")

        def work() -> None:
            ran.append((loop.time(), where.get()))
            where.set(where.get() + "!")
            if len(ran) == 2:
                raise LookupError

        task = MAKERS[what]().call_every(0.1, work)
        where.set("elsewhere")
        await asyncio.sleep(360.05)
        assert [type(failure) for failure in failures] == [LookupError], "T8"
        assert isinstance(task, RepeatingTask)
        assert task.cancel()
        await asyncio.sleep(10)

    aio.run_virtual(main())
    assert len(ran) == 3600
    assert [when for when, _ in ran] == pytest.approx([n * 0.1 for n in range(1, 3601)], abs=2e-9)
    assert [context for _, context in ran[:3]] == ["here", "here!", "here!!"]
    if what == "loop":
        assert [when for when, _ in ran] == [n * 0.1 for n in range(1, 3601)], "to the bit"


def test_a_closed_loop_ends_it() -> None:
    async def main() -> RepeatingTask:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, aio.EventLoop)
        task = loop.call_every(0.001, int)
        await asyncio.sleep(0.01)
        return task

    task = aio.run(main())
    assert not task.refresh()


def test_on_uvloop_too() -> None:
    pytest.importorskip("uvloop")

    async def main() -> None:
        loop, ran = asyncio.get_running_loop(), list[float]()
        began = loop.time()
        task = loop.call_every(0.01, lambda: ran.append(loop.time()))  # type: ignore[attr-defined]
        await asyncio.sleep(0.1)
        task.cancel()
        assert ran
        for n, when in enumerate(ran, 1):
            assert when >= began + n * 0.01

    aio.run(main(), loop_factory=aio.uvloop_factory)
