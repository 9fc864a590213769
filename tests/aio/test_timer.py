"""The wheel on somebody else's loop: when tasks run, where, in what context, and what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import random
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from abeyant import DelayedOperation, IdleDetector, PendingTask, Purgatory, TimerClosedError
from abeyant.aio import Timer, run_virtual
from aio.any_loop import LOOPS, EarlyLoop, JumpingLoop, LoopFactory, run
from broken_log import KINDS, broken_log
from purgatory.waits import in_thread
from timer.guard import in_turn

each_loop = pytest.mark.parametrize("factory", LOOPS.values(), ids=LOOPS)


def nothing(*args: object) -> None:
    pass


# -- when ----------------------------------------------------------------------------------------------------


class RefusingLoop(asyncio.SelectorEventLoop):
    """Refuses the first times as past, as Pyodide's loop does where its thread was late."""

    refused = 0

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        if self.refused < 3:
            self.refused += 1
            raise ValueError("Can't schedule in the past")
        return super().call_at(when, callback, *args, context=context)


def test_t1_a_loop_may_refuse_a_time_that_has_just_passed() -> None:
    loop = RefusingLoop()

    async def main() -> float:
        with Timer() as timer:
            begin = loop.time()
            done = loop.create_future()
            timer.call_later(0.02, lambda: done.set_result(loop.time() - begin))
            return float(await done)

    with contextlib.closing(loop):
        took = loop.run_until_complete(main())
    assert loop.refused == 3
    assert took >= 0.02


@each_loop
def test_t1_t3_each_task_runs_once_and_never_early_on_the_loops_clock(factory: LoopFactory) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer()
        rng = random.Random(3)
        late: list[float] = []
        done = asyncio.Event()

        def callback(deadline: float) -> None:
            late.append(loop.time() - deadline)
            if len(late) == 500:
                done.set()

        for _ in range(250):
            deadline = loop.time() + rng.choice([0.0, -1.0, rng.uniform(0, 0.3)])
            timer.call_at(deadline, callback, deadline)
            delay = rng.uniform(0, 0.3)
            timer.call_later(delay, callback, loop.time() + delay)
        await asyncio.wait_for(done.wait(), 30)
        assert min(late) >= -1e-9, "to the nanosecond, in which deadlines are kept"
        assert len(timer) == 0
        assert timer.stats().expired == 500

    run(main(), factory)


@pytest.mark.parametrize("start", [0.0, 3e7, 2.0**53 / 1e9, 1e9])
@pytest.mark.parametrize("kind", [JumpingLoop, EarlyLoop])
def test_t2_at_most_a_tick_late_on_a_virtual_clock(kind: type[JumpingLoop], start: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer()
        rng = random.Random(4)
        late: list[float] = []
        for _ in range(300):
            deadline = loop.time() + rng.choice([0.0, 1e-9, 0.001, 0.064, 4.096, rng.uniform(0, 1e5)])
            timer.call_at(deadline, lambda deadline: late.append(loop.time() - deadline), deadline)
        await asyncio.sleep(1.1e5)
        assert len(late) == 300
        assert min(late) >= 0
        assert max(late) <= (0.001 if kind is JumpingLoop else 0.002) + 1e-6

    run(main(), lambda: kind(start))


def test_an_hour_of_virtual_time_takes_one_wake_up() -> None:
    async def main() -> None:
        timer = Timer()
        timer.call_later(3600.5, nothing)
        await asyncio.sleep(7200)
        assert timer.stats().expired == 1
        assert timer.stats().wakeups == 1, "not one a wheel"

    run_virtual(main())


def test_t5_what_is_overdue_runs_soon_and_not_in_the_call() -> None:
    async def main() -> None:
        timer = Timer()
        ran: list[object] = []
        for delay in (0, -1, -1e6, timedelta(0), float("-inf")):
            timer.call_later(delay, ran.append, delay)
        timer.call_at(0.0, ran.append, "past")
        assert ran == []
        await asyncio.sleep(0.01)
        assert len(ran) == 6

    run(main(), lambda: JumpingLoop(1000.0))


def test_t6_tasks_run_in_the_order_of_their_deadlines_however_they_were_started() -> None:
    async def main() -> None:
        timer = Timer()
        ran: list[int] = []
        order = list(range(500))
        random.Random(5).shuffle(order)
        for number in order:
            timer.call_later(number * 0.01, ran.append, number)
        await asyncio.sleep(6)
        assert ran == list(range(500))

    run_virtual(main())


@each_loop
def test_refresh_and_cancel(factory: LoopFactory) -> None:
    async def main() -> None:
        timer = Timer()
        ran: list[float] = []
        task = timer.call_later(0.03, lambda: ran.append(time.monotonic()))
        other = timer.call_later(0.03, ran.append, -1.0)
        assert task.pending
        assert other.cancel()
        assert not other.cancel()
        assert other.cancelled
        time.sleep(0.025)  # for so long uvloop's clock stands still
        began = time.monotonic()
        assert task.refresh()
        assert task.deadline == pytest.approx(began + 0.03, abs=5)
        while not ran:
            await asyncio.sleep(0.005)
        assert ran[0] >= began + 0.03
        assert not task.refresh()
        assert not task.pending

    run(main(), factory)


def test_t2_a_task_that_was_started_later_and_is_due_earlier_is_not_waited_past() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer()
        ran: list[float] = []
        for delay in (5000.0, 500.0, 50.0, 5.0, 0.5, 0.05):
            timer.call_later(delay, lambda: ran.append(round(loop.time(), 6)))
        await asyncio.sleep(5001)
        assert ran == [0.05, 0.5, 5.0, 50.0, 500.0, 5000.0]

    run_virtual(main())


# -- storms --------------------------------------------------------------------------------------------------


def test_t7_a_storm_runs_in_turns_with_the_loops_other_work_in_between() -> None:
    async def main() -> None:
        timer = Timer()
        count = 0
        seen: list[int] = []

        def ran() -> None:
            nonlocal count
            count += 1

        began = asyncio.Event()
        timer.call_later(1, began.set)
        for _ in range(20_000):
            timer.call_later(1, ran)
        await began.wait()
        while count < 20_000:
            seen.append(count)
            await asyncio.sleep(0)
        assert len(seen) >= 19
        assert max(after - before for before, after in pairwise(seen)) <= 1024

    run_virtual(main())


def test_t7_slow_callbacks_get_fewer_to_a_turn() -> None:
    async def main() -> None:
        timer = Timer()
        ran: list[None] = []
        seen: list[int] = []
        for _ in range(10):
            timer.call_later(0.001, in_turn(lambda: time.sleep(0.003), lambda: ran.append(None)))
        while len(ran) < 10:
            seen.append(len(ran))
            await asyncio.sleep(0)
        assert max(after - before for before, after in zip(seen, [*seen[1:], 10], strict=True)) <= 2

    run(main())


def test_callbacks_that_start_others_without_end_do_not_starve_the_loop() -> None:
    async def main() -> None:
        timer = Timer()

        def again() -> None:
            timer.call_later(0, again)

        again()
        for _ in range(100):
            await asyncio.sleep(0)
        timer.close()

    run(main())


# -- errors --------------------------------------------------------------------------------------------------


@each_loop
def test_t8_an_error_goes_to_the_loops_exception_handler_and_harms_no_other(factory: LoopFactory) -> None:
    async def main() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        timer = Timer()
        ran: list[int] = []

        def fail(error: BaseException) -> None:
            raise error

        timer.call_later(0, fail, LookupError("x"))
        timer.call_later(0, ran.append, 1)
        timer.call_later(0, fail, asyncio.CancelledError())
        timer.call_later(0, ran.append, 2)
        while len(ran) < 2:
            await asyncio.sleep(0.001)
        assert [type(context["exception"]) for context in reported] == [LookupError, asyncio.CancelledError]
        assert "fail" in reported[0]["message"]
        assert reported[0]["timer"] is timer
        assert timer.stats().failed == 2

    run(main(), factory)


@each_loop
@pytest.mark.parametrize("kind", KINDS)
def test_t8_a_log_that_raises_harms_no_other_and_leaves_the_loop_running(factory: LoopFactory, kind: str) -> None:
    async def main() -> None:
        timer = Timer()
        ran: list[int] = []
        timer.call_later(0, int, "x")
        timer.call_later(0, ran.append, 1)
        while not ran:
            await asyncio.sleep(0.001)
        assert timer.stats().failed == 1

    with broken_log(kind) as unraisable:
        run(main(), factory)
    errors = [error.__context__ for error in unraisable]
    while errors and not isinstance(errors[0], ValueError):
        errors = [error.__context__ for error in errors if error is not None]
    assert len(errors) == 1, "the log's error and the callback's, in one chain"


def test_t8_a_callback_that_cannot_be_shown_is_reported_all_the_same() -> None:
    class Unshowable:
        def __call__(self) -> None:
            raise LookupError

        def __repr__(self) -> str:
            raise ValueError

    async def main() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        timer = Timer()
        timer.call_later(0, Unshowable())
        await asyncio.sleep(0.01)
        assert "whose repr raised ValueError" in reported[0]["message"]
        assert isinstance(reported[0]["exception"], LookupError)

    run(main())


def test_t8_on_error_comes_before_the_handler() -> None:
    async def main() -> None:
        reported: list[object] = []
        timer = Timer(on_error=lambda error, callback: reported.extend([type(error), callback]))
        timer.call_later(0, int, "x")
        await asyncio.sleep(0.01)
        assert reported == [ValueError, int]

    run(main())


def test_an_interrupt_ends_the_loop_and_loses_no_task() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    loop = asyncio.SelectorEventLoop()
    ran: list[int] = []
    timer = Timer(loop)
    for number in range(3):
        timer.call_later(0, ran.append, number)
        timer.call_later(0, interrupt)
    for number in range(1, 4):
        with pytest.raises(KeyboardInterrupt):
            loop.run_forever()
        assert ran == list(range(number))
    loop.close()


@pytest.mark.parametrize("debug", [True, False])
def test_a_coroutine_function_is_refused_and_a_coroutine_reported(debug: bool) -> None:
    async def late() -> None:
        raise AssertionError

    async def main() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        timer = Timer()
        with pytest.raises(TypeError, match=r"plain function, not .*late"):
            timer.call_later(0, late)
        with pytest.raises(TypeError, match=r"plain function, not .*late"):
            timer.call_at(0, late)
        timer.call_later(0, lambda: late())
        await asyncio.sleep(0.01)
        assert "returned a coroutine" in str(reported[0]["exception"])

    run(main(), debug=debug)


def test_bad_arguments_are_named() -> None:
    async def main() -> None:
        timer = Timer()
        with pytest.raises(TypeError, match="callback must be callable, not 5"):
            timer.call_later(1, 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="delay must be seconds"):
            timer.call_later("1", nothing)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="not NaN"):
            timer.call_at(float("nan"), nothing)
        assert len(timer) == 0

    run(main())
    with pytest.raises(RuntimeError, match="inside a coroutine, or pass loop="):
        Timer()


# -- closing -------------------------------------------------------------------------------------------------


def test_t9_close_hands_back_what_the_user_gave_and_refuses_what_comes_after() -> None:
    async def main() -> None:
        timer = Timer()
        context = contextvars.copy_context()
        timer.call_later(2, nothing, 1, 2)
        timer.call_later(1, context.run, nothing)
        timer.call_at(3, nothing)
        assert len(timer) == 3
        assert repr(timer) == "<aio.Timer 3 pending>"
        assert timer.next_expiration() is not None
        assert timer.close() == [
            PendingTask(1.0, context.run, (nothing,)),
            PendingTask(2.0, nothing, (1, 2)),
            PendingTask(3.0, nothing, ()),
        ]
        assert timer.close() == []
        assert timer.closed
        assert repr(timer) == "<aio.Timer closed>"
        with pytest.raises(TimerClosedError):
            timer.call_later(1, nothing)
        assert all(handle.cancelled() for handle in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]

    run_virtual(main())


@each_loop
@pytest.mark.parametrize("pending", [True, False])
def test_p7_a_closed_loops_timer_accepts_nothing(factory: LoopFactory, pending: bool) -> None:
    loop = factory()
    timer = Timer(loop)
    if pending:
        timer.call_later(1, nothing)
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        timer.call_later(2, nothing)
    assert len(timer) == pending


def test_what_the_loop_refuses_is_not_accepted() -> None:
    class Refusing(JumpingLoop):
        def call_at(self, when: float, *args: Any, **named: Any) -> asyncio.TimerHandle:  # type: ignore[override]
            raise OSError("no")

    loop = Refusing()
    timer = Timer(loop)
    with pytest.raises(OSError, match="no"):
        timer.call_later(1, nothing)
    assert len(timer) == 0
    loop.close()


# -- context, threads ----------------------------------------------------------------------------------------


def test_a_task_runs_in_the_context_in_which_it_was_scheduled() -> None:
    async def main() -> None:
        timer = Timer()
        word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="none")
        heard: list[str] = []
        other = contextvars.copy_context()
        other.run(word.set, "given")
        word.set("first")
        timer.call_later(0.1, in_turn(lambda: heard.append(word.get()), lambda: word.set("lost")))
        word.set("second")
        timer.call_at(0.2, lambda: heard.append(word.get()))
        timer.call_later(0.3, lambda: heard.append(word.get()), context=other)
        timer.call_at(0.4, lambda: heard.append(word.get()), context=other)
        word.set("last")
        await asyncio.sleep(1)
        assert heard == ["first", "second", "given", "given"]

    run_virtual(main())


@each_loop
def test_another_thread_is_refused_in_debug_mode_but_may_cancel(factory: LoopFactory) -> None:
    async def main() -> None:
        timer = Timer()
        task = timer.call_later(30, nothing)
        calls: list[Callable[[], object]] = [
            lambda: timer.call_later(1, nothing),
            lambda: timer.call_at(1, nothing),
            task.refresh,
            timer.close,
        ]

        def work() -> None:
            for call in calls:
                with pytest.raises(RuntimeError, match="call_soon_threadsafe"):
                    call()
            assert len(timer) == 1
            assert task.pending
            assert task.cancel()

        in_thread(work)
        assert len(timer) == 0

    run(main(), factory, debug=True)


def test_cancels_from_other_threads_race_with_the_loop_and_each_task_ends_once() -> None:
    async def main() -> None:
        timer = Timer()
        ran: list[int] = []
        tasks = [timer.call_later(0.02 + number % 100 * 0.001, ran.append, number) for number in range(5000)]
        cancelled: list[int] = []

        def work(seed: int) -> None:
            order = list(range(5000))
            random.Random(seed).shuffle(order)
            for number in order[:3000]:
                if tasks[number].cancel():
                    cancelled.append(number)

        workers = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(2)]
        for worker in workers:
            worker.start()
        while len(timer):
            await asyncio.sleep(0.001)
        for worker in workers:
            await asyncio.to_thread(worker.join, 30)
        assert sorted(ran + cancelled) == list(range(5000))

    run(main())


# -- wake-ups, memory ----------------------------------------------------------------------------------------


def test_t10_one_handle_serves_all_and_nothing_pending_wakes_nobody() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        timer = Timer()
        tasks = [timer.call_later(delay, nothing) for delay in range(100, 0, -1)]
        tasks += [timer.call_later(delay, nothing) for delay in range(1, 100)]
        assert sum(not handle.cancelled() for handle in loop._scheduled) == 1
        for task in tasks:
            task.cancel()
        await asyncio.sleep(200)
        wakeups = timer.stats().wakeups
        assert wakeups <= 1, "the stale one"
        assert timer.next_expiration() is None
        await asyncio.sleep(1e6)
        assert timer.stats().wakeups == wakeups
        timer.call_later(5, tasks.clear)
        await asyncio.sleep(6)
        assert tasks == []

    run_virtual(main())


class Thing:
    """Can be called, and watched by a weak reference."""

    def __call__(self, *args: object) -> None:
        pass


@each_loop
@pytest.mark.parametrize("how", ["cancel", "run", "raise", "close"])
def test_t4_an_ended_task_is_let_go_of_at_once(factory: LoopFactory, how: str) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(nothing)
        timer = Timer()
        thing = Thing()
        dead = weakref.ref(thing)
        callback: Any = int if how == "raise" else nothing
        task = timer.call_later(0 if how in ("run", "raise") else 60, callback, thing)
        another = timer.call_later(30, nothing)
        del thing
        if how == "cancel":
            task.cancel()
        elif how == "close":
            timer.close()
        else:
            await asyncio.sleep(0.02)
        assert dead() is None
        another.cancel()

    gc.disable()
    try:
        run(main(), factory)
    finally:
        gc.enable()


@each_loop
def test_dropped_with_nothing_pending_it_is_freed_though_the_loop_would_wake_it(factory: LoopFactory) -> None:
    async def main() -> None:
        for cancel in (True, False):
            timer = Timer()
            task = timer.call_later(3600 if cancel else 0, nothing)
            if cancel:
                task.cancel()
            await asyncio.sleep(0.01)
            dead = weakref.ref(timer)
            del timer
            gc.collect()
            assert dead() is None

    run(main(), factory)


@each_loop
def test_dropped_with_tasks_pending_it_runs_them_first(factory: LoopFactory) -> None:
    async def main() -> None:
        done = asyncio.Event()
        timer = Timer()
        timer.call_later(0.02, done.set)
        dead = weakref.ref(timer)
        del timer
        gc.collect()
        await asyncio.wait_for(done.wait(), 30)
        await asyncio.sleep(0)
        gc.collect()
        assert dead() is None

    run(main(), factory)


@pytest.mark.parametrize("close", [True, False])
def test_a_dropped_loop_is_freed_with_its_timer_and_tasks(close: bool) -> None:
    loop = JumpingLoop()
    timer = Timer(loop)
    thing = Thing()
    timer.call_later(3600, thing)
    task = timer.call_later(3600, nothing, timer, loop, thing)
    watched: list[weakref.ref[object]] = [weakref.ref(loop), weakref.ref(timer), weakref.ref(thing)]
    if close:
        loop.close()
    del loop, timer, thing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # that the loop is not closed
        gc.collect()
    assert [one() for one in watched] == [None] * 3
    assert not task.pending


# -- the other rooms on it -----------------------------------------------------------------------------------


def test_an_idle_detector_on_it() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer()
        told: list[tuple[float, object]] = []
        idle = IdleDetector(30, lambda peer: told.append((round(loop.time(), 6), peer)), timer)
        for second in range(60):
            idle.seen("busy")
            if second < 10:
                idle.seen("fades")
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        assert told == [(39.0, "fades"), (89.0, "busy")]
        idle._check()

    run_virtual(main())


def test_a_purgatory_on_it() -> None:
    class Wait(DelayedOperation):
        ready = False
        ends = ""

        def try_complete(self) -> bool:
            return self.ready and self.force_complete()

        def on_complete(self) -> None:
            self.ends += "c"

        def on_expiration(self) -> None:
            self.ends += "e"

    async def main() -> None:
        timer = Timer()
        purgatory: Purgatory[Wait] = Purgatory("p", timer)
        first, second = Wait(10), Wait(10)
        for wait in (first, second):
            assert not purgatory.try_complete_else_watch(wait, ["k"])
        await asyncio.sleep(5)
        first.ready = True
        in_thread(lambda: purgatory.check_and_complete("k"))  # cancels its task from there
        assert (first.ends, second.ends) == ("c", "")
        assert len(timer) == 1
        await asyncio.sleep(6)
        assert (first.ends, second.ends) == ("c", "ce")

    run_virtual(main())
