"""What a timer holds, and that it lets go of it at once (T4), with and without the collector's help."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from abeyant import ManualTimer, SystemTimer, TimerTask
from timer.guard import in_turn, threads_named, wait_for
from waiting import wait_until


class Thing:
    """Callable, and able to be watched by a weak reference."""

    def __call__(self, *args: object) -> None:
        pass

    def method(self) -> None:
        pass


def nothing(*args: object) -> None:
    pass


STARTS: dict[str, Callable[[Any, Thing], TimerTask]] = {
    "callback": lambda timer, thing: timer.call_later(30, thing),
    "callback with arguments": lambda timer, thing: timer.call_later(30, thing, 1, 2),
    "bound method": lambda timer, thing: timer.call_later(30, thing.method),
    "argument": lambda timer, thing: timer.call_later(30, nothing, thing),
}


@pytest.fixture(params=[ManualTimer, SystemTimer], ids=["manual", "system"])
def timer(request: pytest.FixtureRequest) -> Any:
    gc.disable()  # so that whatever dies in here does so without the collector
    timer = request.param()
    yield timer
    timer.close()
    gc.enable()


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_t4_a_cancelled_task_is_unreachable_at_once(timer: Any, start: Callable[..., TimerTask]) -> None:
    thing = Thing()
    dead = weakref.ref(thing)
    task = start(timer, thing)
    del thing
    assert dead() is not None
    assert task.cancel()
    assert dead() is None
    assert len(timer) == 0


def test_t4_a_refreshed_task_is_unreachable_at_once_when_cancelled(timer: Any) -> None:
    thing = Thing()
    dead = weakref.ref(thing)
    task = timer.call_later(30, thing)
    task.refresh()
    del thing
    task.cancel()
    assert dead() is None


def test_t4_t9_counts_are_exact_and_the_cancelled_gone_among_a_hundred_thousand(timer: Any) -> None:
    rng = random.Random(2)
    things = [Thing() for _ in range(100_000)]
    tasks = [timer.call_later(rng.uniform(60, 10**6), thing) for thing in things]
    watched = [weakref.ref(thing) for thing in things]
    del things
    assert len(timer) == 100_000
    order = rng.sample(range(100_000), 70_000)
    for count, number in enumerate(order, 1):
        assert tasks[number].cancel()
        assert watched[number]() is None
        if count % 10_000 == 0:
            assert len(timer) == 100_000 - count
    assert sum(one() is not None for one in watched) == 30_000
    assert len(timer.close()) == 30_000
    assert not any(one() for one in watched)


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_task_that_has_run_is_let_go_of_at_once(start: Callable[..., TimerTask]) -> None:
    timer = ManualTimer()
    thing = Thing()
    dead = weakref.ref(thing)
    task = start(timer, thing)
    timer.call_later(40, nothing)
    del thing
    timer.advance(30)
    assert dead() is None
    assert not task.pending


def test_a_task_that_has_run_on_the_thread_is_let_go_of_though_nothing_follows() -> None:
    with SystemTimer() as timer:
        thing = Thing()
        dead = weakref.ref(thing)
        timer.call_later(0, thing, 1)
        del thing
        wait_until(lambda: dead() is None)


def test_a_task_that_raised_is_let_go_of_at_once() -> None:
    class Raising(Thing):
        def __call__(self, *args: object) -> None:
            raise LookupError

    for timer in (ManualTimer(on_error=nothing), SystemTimer(on_error=nothing)):
        thing = Raising()
        dead = weakref.ref(thing)
        timer.call_later(0, thing)
        del thing
        if isinstance(timer, ManualTimer):
            timer.advance(0)
            assert dead() is None
        else:
            wait_until(lambda dead=dead: dead() is None)  # type: ignore[misc]
        timer.close()


def test_what_close_hands_back_is_held_by_nothing_else(timer: Any) -> None:
    thing = Thing()
    dead = weakref.ref(thing)
    task = timer.call_later(30, thing)
    del thing
    pending = timer.close()
    assert dead() is pending[0].callback
    del pending
    assert dead() is None
    assert not task.pending


# -- finalisers run outside the lock -------------------------------------------------------------------------


class AsksTheTimer:
    """As it dies it lets another thread use the timer, and waits for that: a lock held here would deadlock."""

    def __init__(self, timer: Any, answers: list[bool]) -> None:
        self.timer = timer
        self.answers = answers

    def __call__(self) -> None:
        pass

    def __del__(self) -> None:
        other = threading.Thread(target=self.timer.__len__, daemon=True)
        other.start()
        other.join(5)
        self.answers.append(not other.is_alive())


def test_a_callback_dies_outside_the_lock_when_cancelled(timer: Any) -> None:
    answers: list[bool] = []
    timer.call_later(30, AsksTheTimer(timer, answers)).cancel()
    assert answers == [True]


def test_callbacks_die_outside_the_lock_after_they_ran() -> None:
    timer = ManualTimer()
    answers: list[bool] = []
    for _ in range(3):
        timer.call_later(1, AsksTheTimer(timer, answers))
    timer.advance(2)
    assert answers == [True] * 3


def test_callbacks_die_outside_the_lock_after_they_ran_on_the_thread() -> None:
    answers: list[bool] = []
    with SystemTimer() as timer:
        for _ in range(3):
            timer.call_later(0, AsksTheTimer(timer, answers))
        wait_until(lambda: len(answers) == 3)
    assert answers == [True] * 3


def test_callbacks_die_outside_the_lock_when_the_timer_closes(timer: Any) -> None:
    answers: list[bool] = []
    for _ in range(3):
        timer.call_later(30, AsksTheTimer(timer, answers))
    timer.close()
    assert answers == [True] * 3


def test_a_callback_that_is_refused_dies_outside_the_lock(timer: Any) -> None:
    answers: list[bool] = []
    timer.close()
    with pytest.raises(RuntimeError, match="closed"):
        timer.call_later(30, AsksTheTimer(timer, answers))
    assert answers in ([True], [])  # the exception's traceback may hold it still


def test_a_dying_callback_may_cancel_other_tasks(timer: Any) -> None:
    cancelled: list[bool] = []

    class Dying(Thing):
        def __del__(self) -> None:
            cancelled.append(other.cancel())

    other = timer.call_later(20, nothing)
    timer.call_later(30, Dying()).cancel()
    assert cancelled == [True]
    assert len(timer) == 0


def test_a_weak_references_callback_may_cancel(timer: Any) -> None:
    done = threading.Event()
    thing = Thing()
    thing.itself = thing  # type: ignore[attr-defined]  # a cycle: only the collector frees it
    task = timer.call_later(30, nothing)
    watch = weakref.ref(thing, in_turn(task.cancel, done.set))
    del thing
    gc.collect()
    wait_for(done)
    assert watch() is None
    assert task.cancelled


# -- cycles --------------------------------------------------------------------------------------------------


def test_a_dropped_manual_timer_is_freed_with_all_that_it_holds() -> None:
    timer = ManualTimer()
    thing = Thing()
    watched: list[weakref.ref[object]] = [weakref.ref(timer), weakref.ref(thing)]
    for delay in (1, 100, 10**6):
        timer.call_later(delay, thing)
    task = timer.call_later(5, thing)
    del timer, thing
    gc.collect()
    assert [one() for one in watched] == [None, None]
    assert not task.pending


def test_a_cycle_through_a_callback_is_freed_with_the_timer() -> None:
    timer = ManualTimer()
    thing = Thing()
    thing.timer = timer  # type: ignore[attr-defined]
    thing.task = timer.call_later(5, thing)  # type: ignore[attr-defined]
    timer.call_later(6, timer.advance, 1)
    timer.call_later(7, nothing, timer, thing)
    watched: list[weakref.ref[object]] = [weakref.ref(timer), weakref.ref(thing)]
    del timer, thing
    gc.collect()
    assert [one() for one in watched] == [None, None]


def test_a_cycle_through_on_error_is_freed_with_the_timer() -> None:
    class Service:
        def __init__(self) -> None:
            self.timer = ManualTimer(on_error=self.failed)
            self.task = self.timer.call_later(1, self.failed, None, None)

        def failed(self, error: object, callback: object) -> None:
            pass

    service = Service()
    watched: list[weakref.ref[object]] = [weakref.ref(service), weakref.ref(service.timer)]
    del service
    gc.collect()
    assert [one() for one in watched] == [None, None]


def test_a_task_does_not_keep_its_callback_or_its_timer_alive() -> None:
    timer = ManualTimer()
    thing = Thing()
    watched: list[weakref.ref[object]] = [weakref.ref(timer), weakref.ref(thing)]
    tasks = [timer.call_later(delay, thing) for delay in range(3)]
    timer.advance(5)
    del timer, thing
    gc.collect()
    assert [one() for one in watched] == [None, None]
    assert not any(task.pending for task in tasks)


def test_an_idle_system_timer_that_is_dropped_is_freed_and_its_thread_ends() -> None:
    timer = SystemTimer("dropped")
    done = threading.Event()
    timer.call_later(0, done.set)
    wait_for(done)
    watch = weakref.ref(timer)
    del timer
    gc.collect()
    wait_until(lambda: watch() is None)
    wait_until(lambda: threads_named("dropped-timer") == [])


def test_tasks_of_a_dropped_system_timer_run_all_the_same() -> None:
    done = threading.Event()
    SystemTimer("forgotten").call_later(0.05, done.set)
    gc.collect()
    wait_for(done)
    wait_until(lambda: threads_named("forgotten-timer") == [])


def test_what_an_executor_drops_is_let_go_of_without_the_collector() -> None:
    class Dropping(Executor):
        def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            job: Future[Any] = Future()
            job.cancel()
            job.set_running_or_notify_cancel()
            return job

    thing, done = Thing(), threading.Event()
    watch = weakref.ref(thing)
    with SystemTimer(executor=Dropping(), on_error=lambda *_: done.set()) as timer:
        gc.disable()
        try:
            timer.call_later(0, thing)
            del thing
            wait_for(done)
            wait_until(lambda: watch() is None)
        finally:
            gc.enable()


def test_the_collector_does_not_see_pending_tasks_one_by_one() -> None:
    timer = ManualTimer()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(10_000):
        timer.call_later(100, nothing)
    assert len(gc.get_objects()) - before < 100


def test_ended_tasks_leave_no_memory_behind() -> None:
    timer = ManualTimer()
    for _ in range(3):
        for number in range(20_000):
            timer.call_later(1 + number % 50, nothing).cancel()
            if number % 100 == 0:
                timer.call_at(0, nothing).cancel()  # overdue
        timer.advance(1)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(50_000):
        timer.call_later(1 + number % 50, nothing)
    timer.advance(100)
    gc.collect()
    assert len(gc.get_objects()) - before < 100
    assert len(timer) == 0
