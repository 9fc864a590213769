"""The timer on a virtual clock, and with it what all timers have in common."""

from __future__ import annotations

import logging
import math
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from abeyant import ManualTimer, PendingTask, TimerClosedError, TimerTask
from abeyant.engine import is_compiled
from timer.guard import join


@pytest.fixture
def timer() -> ManualTimer:
    return ManualTimer()


@pytest.fixture
def ran() -> list[Any]:
    return []


# -- running -------------------------------------------------------------------------------------------------


def test_time_passes_when_it_is_told_to(timer: ManualTimer, ran: list[Any]) -> None:
    timer.call_later(5, ran.append, "five")
    assert timer.time() == 0
    assert timer.advance(4.999) == 0
    assert ran == []
    assert timer.advance(0.001) == 1
    assert ran == ["five"]
    assert timer.time() == 5
    assert timer.advance(100) == 0


def test_call_at_counts_from_the_beginning_of_the_clock(ran: list[Any]) -> None:
    timer = ManualTimer(start=100.0)
    assert timer.time() == 100
    timer.call_at(102, ran.append, "at 102")
    timer.call_later(1, ran.append, "at 101")
    assert timer.advance_to(101) == 1
    assert timer.advance_to(102.0) == 1
    assert ran == ["at 101", "at 102"]


def test_a_step_to_the_next_deadline_runs_what_is_due_there_and_no_more(timer: ManualTimer, ran: list[Any]) -> None:
    assert (timer.next_deadline(), timer.advance_to_next(), timer.time()) == (None, 0, 0.0)
    for deadline in (3600.5, 3600.25, 3600.25, math.inf):
        timer.call_at(deadline, ran.append, deadline)
    assert timer.next_deadline() == 3600.25
    assert (timer.advance_to_next(), ran, timer.time()) == (2, [3600.25, 3600.25], 3600.25)
    timer.call_later(0, ran.append, "now")
    assert (timer.advance_to_next(), timer.time()) == (1, 3600.25)
    assert (timer.advance_to_next(), timer.time()) == (1, 3600.5)
    assert (timer.next_deadline(), timer.advance_to_next(), timer.time()) == (math.inf, 0, 3600.5)


def test_arguments_reach_the_callback_and_a_tuple_stays_one_argument(timer: ManualTimer, ran: list[Any]) -> None:
    def callback(*args: object) -> None:
        ran.append(args)

    timer.call_later(1, callback)
    timer.call_later(1, callback, ())
    timer.call_later(1, callback, (1, 2))
    timer.call_later(1, callback, 1, 2)
    timer.advance(1)
    assert ran == [(), ((),), ((1, 2),), (1, 2)]


def test_timedelta_stands_for_seconds(timer: ManualTimer, ran: list[Any]) -> None:
    timer.call_later(timedelta(minutes=1), ran.append, 1)
    assert timer.advance(timedelta(seconds=59)) == 0
    assert timer.advance(timedelta(seconds=1)) == 1


def test_t1_a_coarse_tick_rounds_up_never_down(ran: list[Any]) -> None:
    timer = ManualTimer(tick=0.01)
    task = timer.call_later(0.011, lambda: ran.append(timer.time()))
    assert task.deadline == 0.011
    assert timer.advance(0.011) == 0
    assert timer.advance(0.0089) == 0
    assert timer.advance(0.0001) == 1
    assert ran == [0.02]


def test_t5_a_task_already_due_runs_at_the_next_turn_never_inside_the_call(timer: ManualTimer, ran: list[Any]) -> None:
    timer.advance(10)
    for delay in (0, -5, -math.inf):
        timer.call_later(delay, ran.append, delay)
    timer.call_at(3, ran.append, "at 3")
    assert ran == []
    assert len(timer) == 4
    assert timer.advance(0) == 4
    assert ran == [-math.inf, "at 3", -5, 0]


def test_t6_tasks_run_in_the_order_of_deadlines_and_within_a_tick_of_arrival(
    timer: ManualTimer, ran: list[Any]
) -> None:
    for name, delay in [("c", 3), ("a", 1), ("b", 2), ("b2", 2), ("a2", 1), ("c2", 3)]:
        timer.call_later(delay, ran.append, name)
    timer.advance(3)
    assert ran == ["a", "a2", "b", "b2", "c", "c2"]


def test_during_a_callback_the_clock_shows_the_time_at_which_it_came_due(timer: ManualTimer, ran: list[Any]) -> None:
    for delay in (1, 2, 70, 3600, 86_400 * 365):
        timer.call_later(delay, lambda: ran.append(timer.time()))
    timer.advance(10**9)
    assert ran == [1, 2, 70, 3600, 86_400 * 365]
    assert timer.time() == 10**9


def test_t7_time_does_not_go_back(timer: ManualTimer) -> None:
    timer.advance(10)
    with pytest.raises(ValueError, match=r"time does not go back: -1 .* 10\.0 s"):
        timer.advance(-1)
    with pytest.raises(ValueError, match=r"time does not go back: 9\.5 .* 10\.0 s"):
        timer.advance_to(9.5)
    assert timer.time() == 10


def test_time_goes_as_far_as_146_years_and_no_further(timer: ManualTimer) -> None:
    timer.call_later(1, int)
    for seconds in (math.inf, 1e300):
        with pytest.raises(OverflowError, match="146 years"):
            timer.advance(seconds)
    assert (timer.time(), len(timer)) == (0, 1), "and a refusal changes nothing"


@pytest.mark.parametrize("bad", [math.nan, "5", None])
def test_bad_times_are_refused_and_nothing_is_added(timer: ManualTimer, bad: Any) -> None:
    for attempt in (
        lambda: timer.call_later(bad, int),
        lambda: timer.call_at(bad, int),
        lambda: timer.advance(bad),
        lambda: timer.advance_to(bad),
    ):
        with pytest.raises((TypeError, ValueError), match=r"(delay|deadline|seconds|time) must be"):
            attempt()
    assert len(timer) == 0


@pytest.mark.parametrize("bad", [None, 5, "call me", ()])
def test_a_callback_that_cannot_be_called_is_refused_by_name(timer: ManualTimer, bad: Any) -> None:
    with pytest.raises(TypeError, match="callback must be callable"):
        timer.call_later(1, bad)
    assert len(timer) == 0


def test_an_infinite_delay_stays_pending_and_can_be_cancelled(timer: ManualTimer) -> None:
    task = timer.call_later(math.inf, int)
    other = timer.call_later(1e18, int)
    timer.advance(4e9 - 1)
    assert task.deadline == math.inf
    assert len(timer) == 2
    assert task.cancel()
    assert other.refresh()
    assert len(timer) == 1


# -- cancelling and refreshing -------------------------------------------------------------------------------


def test_t3_cancel_says_whether_it_prevented_the_run(timer: ManualTimer, ran: list[Any]) -> None:
    cancelled = timer.call_later(1, ran.append, "cancelled")
    run = timer.call_later(1, ran.append, "run")
    assert cancelled.pending
    assert cancelled.cancel() is True
    assert cancelled.cancel() is False
    assert timer.advance(1) == 1
    assert run.cancel() is False
    assert ran == ["run"]
    assert (cancelled.pending, cancelled.cancelled) == (False, True)
    assert (run.pending, run.cancelled) == (False, False)


def test_t3_a_callback_may_cancel_another_that_is_due_at_the_same_tick(timer: ManualTimer, ran: list[Any]) -> None:
    timer.call_later(1, lambda: ran.append(victim.cancel()))
    victim: TimerTask = timer.call_later(1, ran.append, "victim")
    timer.call_later(1, ran.append, "last")
    assert timer.advance(1) == 2
    assert ran == [True, "last"]


def test_t3_a_callback_cannot_cancel_or_refresh_itself(timer: ManualTimer, ran: list[Any]) -> None:
    task: TimerTask = timer.call_later(1, lambda: ran.extend([task.cancel(), task.refresh(), task.pending]))
    timer.advance(1)
    assert ran == [False, False, False]


def test_refresh_starts_the_same_delay_again(timer: ManualTimer, ran: list[Any]) -> None:
    task = timer.call_later(5, lambda: ran.append(timer.time()))
    for _ in range(10):
        timer.advance(4)
        assert task.refresh()
        assert task.deadline == timer.time() + 5
    assert timer.advance(4.999) == 0
    timer.advance(1)
    assert ran == [45]
    assert not task.refresh()


def test_refresh_of_a_call_at_repeats_what_was_left_when_it_was_made(timer: ManualTimer) -> None:
    timer.advance(10)
    task = timer.call_at(13, int)
    timer.advance(2)
    assert task.refresh()
    assert task.deadline == 15


def test_a_callback_may_refresh_another_that_is_due_at_the_same_tick(timer: ManualTimer, ran: list[Any]) -> None:
    timer.call_later(1, lambda: other.refresh())
    other: TimerTask = timer.call_later(1, lambda: ran.append(timer.time()))
    assert timer.advance(1.5) == 1
    assert ran == []
    timer.advance(10)
    assert ran == [2]


@pytest.mark.skipif(is_compiled(), reason="compiled, a refresh is one uninterrupted piece of C")
def test_of_two_refreshes_at_once_the_later_one_counts() -> None:
    class SlowToRefresh(ManualTimer):
        """Lets another thread in just after it has read the clock."""

        def _now(self) -> int:
            now = super()._now()
            if slow and threading.current_thread() is main:
                slow.pop()
                self._time += 5 * 10**9
                other.start()
                other.join(0.2)  # it may have to wait for us
            return now

    main = threading.current_thread()
    slow: list[bool] = []
    timer = SlowToRefresh()
    task = timer.call_later(10, int)
    other = threading.Thread(target=task.refresh, daemon=True)
    slow.append(True)
    assert task.refresh()
    join(other)
    assert task.deadline == 15, "T1: what was refreshed at 5 does not run before 15"


# -- callbacks that use the timer ----------------------------------------------------------------------------


def test_what_a_callback_starts_runs_in_the_same_advance_if_its_deadline_is_reached(
    timer: ManualTimer, ran: list[Any]
) -> None:
    def again(times: int) -> None:
        ran.append(timer.time())
        if times:
            timer.call_later(1, again, times - 1)

    timer.call_later(1, again, 4)
    assert timer.advance(3.5) == 3
    assert ran == [1, 2, 3]
    assert timer.advance(10) == 2
    assert ran == [1, 2, 3, 4, 5]


def test_t5_what_a_callback_starts_for_now_runs_after_it_in_the_same_advance(
    timer: ManualTimer, ran: list[Any]
) -> None:
    def first() -> None:
        timer.call_later(0, ran.append, "second")
        ran.append("first")

    timer.call_later(1, first)
    assert timer.advance(1) == 2
    assert ran == ["first", "second"]


def test_t7_a_callback_may_advance_the_clock_and_no_task_runs_out_of_turn(timer: ManualTimer, ran: list[Any]) -> None:
    timer.call_later(1, lambda: timer.advance(5))
    for delay in (2, 6, 7):
        timer.call_later(delay, lambda: ran.append(timer.time()))
    assert timer.advance(3) == 1, "the inner advance ran the others"
    assert ran == [2, 6]
    assert timer.time() == 6, "the inner advance got further than the outer"
    timer.advance(1)
    assert ran == [2, 6, 7]


def test_t9_a_callback_may_close_the_timer(timer: ManualTimer, ran: list[Any]) -> None:
    timer.call_later(1, lambda: ran.extend(timer.close()))
    timer.call_later(2, int)
    assert timer.advance(5) == 1
    assert [task.callback for task in ran] == [int]
    assert timer.time() == 5


# -- budgets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 2, 7, 1000])
def test_t7_a_budget_of_tasks_cuts_an_advance_into_turns_and_keeps_the_order(budget: int) -> None:
    timer = ManualTimer()
    ran: list[tuple[float, int]] = []
    delays = [float(number * 7 % 10) for number in range(100)]
    for number, delay in enumerate(delays):
        timer.call_later(delay, lambda number: ran.append((timer.time(), number)), number)
    turns = 0
    while timer.time() < 20:
        count = len(ran)
        assert timer.advance_to(20, max_tasks=budget) == len(ran) - count <= budget
        turns += 1
    assert ran == sorted((delay, number) for number, delay in enumerate(delays)), "each at its own time"
    assert turns == 100 // budget + 1


def test_t7_a_budget_of_time_ends_an_advance_with_the_task_that_used_it_up(timer: ManualTimer, ran: list[Any]) -> None:
    def slow(number: int) -> None:
        time.sleep(0.002)
        ran.append(number)

    for number in range(3):
        timer.call_later(1 + number, slow, number)
    for count in (1, 2, 3):
        assert timer.advance(10, max_seconds=0.001) == 1
        assert len(ran) == count
        assert timer.time() == count
    assert timer.advance_to(10, max_seconds=timedelta(hours=1)) == 0
    assert (ran, timer.time()) == ([0, 1, 2], 10)


def test_t7_a_budget_that_a_slow_machine_has_used_up_before_the_first_task_still_runs_it(
    timer: ManualTimer, ran: list[Any]
) -> None:
    for number in range(3):
        timer.call_later(100 + number, ran.append, number)  # so far off that they are filed anew on the way
    for count in (1, 2, 3):
        assert timer.advance_to(200, max_seconds=1e-9) == 1
        assert (len(ran), timer.time()) == (count, 99 + count)


@pytest.mark.parametrize("budget", [{"max_tasks": 0}, {"max_tasks": -5}, {"max_seconds": 0}, {"max_seconds": -1.5}])
def test_a_budget_of_nothing_does_nothing(timer: ManualTimer, ran: list[Any], budget: Any) -> None:
    timer.call_later(1, ran.append, 1)
    assert timer.advance(5, **budget) == 0
    assert (ran, timer.time()) == ([], 0)


@pytest.mark.parametrize("budget", [{"max_tasks": 1.5}, {"max_tasks": "1"}, {"max_seconds": "1"}])
def test_a_budget_that_is_none_is_refused(timer: ManualTimer, budget: Any) -> None:
    with pytest.raises(TypeError, match=next(iter(budget))):
        timer.advance(5, **budget)
    assert timer.time() == 0


# -- errors --------------------------------------------------------------------------------------------------


def boom() -> None:
    raise LookupError("boom")


def test_t8_an_error_goes_to_on_error_and_harms_no_other(ran: list[Any]) -> None:
    timer = ManualTimer(on_error=lambda error, callback: ran.append((error, callback)))
    timer.call_later(1, boom)
    timer.call_later(1, ran.append, "next")
    assert timer.advance(1) == 2
    (error, callback), after = ran
    assert isinstance(error, LookupError)
    assert callback is boom
    assert after == "next"
    assert timer.stats().failed == 1


def test_t8_without_on_error_it_is_logged_with_its_traceback(
    timer: ManualTimer, caplog: pytest.LogCaptureFixture
) -> None:
    timer.call_later(1, boom)
    timer.advance(1)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.name == "abeyant.timer"
    assert "boom" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


def test_t8_an_on_error_that_raises_is_logged_and_so_is_what_it_was_told(caplog: pytest.LogCaptureFixture) -> None:
    def on_error(error: BaseException, callback: object) -> None:
        raise RuntimeError("the handler is broken too")

    timer = ManualTimer(on_error=on_error)
    ran: list[int] = []
    timer.call_later(1, boom)
    timer.call_later(1, ran.append, 1)
    assert timer.advance(1) == 2
    assert ran == [1]
    errors = [type(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert errors == [RuntimeError, LookupError]


def test_a_log_record_is_written_without_asking_the_timer_for_anything(
    timer: ManualTimer, caplog: pytest.LogCaptureFixture
) -> None:
    # Records are formatted under the handler's lock. A timer's `repr` takes the timer's lock, under which the
    # collector may run a `__del__` that logs: with both locks taken in either order two threads would deadlock.
    timer.call_later(1, boom)
    timer.advance(1)
    assert not any(isinstance(value, ManualTimer) for record in caplog.records for value in record.args or ())


def test_t8_what_is_no_error_but_an_order_to_stop_reaches_the_caller(timer: ManualTimer, ran: list[Any]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    timer.call_later(1, interrupt)
    timer.call_later(1, ran.append, "next")
    with pytest.raises(KeyboardInterrupt):
        timer.advance(5)
    assert len(timer) == 1
    timer.advance(0)
    assert ran == ["next"], "and the timer goes on where it was"


def test_on_error_must_be_callable() -> None:
    with pytest.raises(TypeError, match="on_error must be callable, not 5"):
        ManualTimer(on_error=5)  # type: ignore[arg-type]


# -- the rest of the surface ---------------------------------------------------------------------------------


def test_t9_len_is_exact_and_an_empty_timer_is_still_true(timer: ManualTimer) -> None:
    assert len(timer) == 0
    assert timer
    tasks = [timer.call_later(delay, int) for delay in range(10)]
    assert len(timer) == 10
    tasks[3].cancel()
    assert len(timer) == 9
    timer.advance(5)
    assert len(timer) == 4


def test_t9_close_hands_back_what_was_pending_in_order_and_refuses_what_comes_after(timer: ManualTimer) -> None:
    tasks = [timer.call_later(delay, print, delay) for delay in (3, 1, 2)]
    timer.call_later(1, int)
    assert timer.close() == [
        PendingTask(1.0, print, (1,)),
        PendingTask(1.0, int, ()),
        PendingTask(2.0, print, (2,)),
        PendingTask(3.0, print, (3,)),
    ]
    assert timer.closed
    assert len(timer) == 0
    assert timer.close() == []
    assert not any(task.pending or task.cancelled or task.cancel() or task.refresh() for task in tasks)
    for attempt in (timer.call_later, timer.call_at):
        with pytest.raises(TimerClosedError, match=r"closed and cannot run .*int"):
            attempt(1, int)
    assert len(timer) == 0
    assert timer.advance(10) == 0


def test_t9_a_with_block_closes(ran: list[Any]) -> None:
    with ManualTimer() as timer:
        timer.call_later(1, ran.append, 1)
    assert timer.closed
    assert ran == []


def test_next_expiration_is_at_or_before_the_earliest_deadline_and_none_without_one(timer: ManualTimer) -> None:
    assert timer.next_expiration() is None
    task = timer.call_later(3, int)
    upcoming = timer.next_expiration()
    assert upcoming is not None
    assert 0 < upcoming <= 3
    task.cancel()
    assert timer.next_expiration() is None


def test_stats_count(timer: ManualTimer) -> None:
    for delay in (1, 2, 3, 4000):
        timer.call_later(delay, int)
    timer.call_later(5, int).cancel()
    timer.advance(2)
    stats = timer.stats()
    assert (stats.pending, stats.started, stats.expired, stats.cancelled, stats.failed) == (2, 5, 2, 1, 0)
    assert stats.levels >= 1
    timer.close()
    assert timer.stats().cancelled == 3


def test_a_task_tells_its_state(timer: ManualTimer) -> None:
    task = timer.call_later(3, int)
    assert "pending" in repr(task)
    assert "deadline=3s" in repr(task)
    assert "1 pending" in repr(timer)
    task.cancel()
    assert "cancelled" in repr(task)
    ended = timer.call_later(1, int)
    timer.advance(1)
    assert "ended" in repr(ended)


def test_a_task_outlives_its_timer_and_says_that_it_is_no_longer_pending() -> None:
    def make() -> TimerTask:
        return ManualTimer().call_later(1, int)

    task = make()
    assert (task.pending, task.cancel(), task.refresh()) == (False, False, False)
    assert "ended" in repr(task)


@pytest.mark.parametrize("start", [-1.0, math.inf, math.nan])
def test_a_clock_cannot_start_before_zero_or_at_no_time(start: float) -> None:
    with pytest.raises((ValueError, OverflowError), match="start"):
        ManualTimer(start=start)


def test_several_threads_may_use_a_manual_timer_that_another_advances(timer: ManualTimer) -> None:
    ran: list[int] = []
    cancelled: list[int] = []

    def work(worker: int) -> None:
        for number in range(500):
            key = worker * 1000 + number
            task = timer.call_later(number % 7, ran.append, key)
            if number % 3 == 0 and task.cancel():
                cancelled.append(key)

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        timer.advance(0.5)
    for worker in workers:
        join(worker)
    timer.advance(100)
    assert sorted(ran + cancelled) == sorted(worker * 1000 + number for worker in range(4) for number in range(500))
