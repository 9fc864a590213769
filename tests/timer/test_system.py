"""The timer with a thread, on the real clock. Nothing here asserts how long a thing takes, only that it ends."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from abeyant import DelayedOperation, IdleDetector, Purgatory, SystemTimer, TimerTask
from abeyant.engine import is_compiled
from timer.guard import PATIENCE, in_turn, join, threads_named, wait_for
from waiting import wait_until


@pytest.fixture
def timer() -> Iterator[SystemTimer]:
    timer = SystemTimer("test")
    yield timer
    timer.close()


def quiet(timer: SystemTimer) -> int:
    """Wait until the timer's thread has gone to sleep for good; return how often it has woken so far."""
    thread = threads_named(f"{timer.name}-timer")[0]
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    used, still = -1, 0

    def asleep() -> bool:
        nonlocal used, still
        now = time.clock_gettime_ns(clock)
        still, used = (still + 1 if now == used else 0), now
        time.sleep(0.002)
        return still > 20

    wait_until(asleep)
    return timer.stats().wakeups


# -- T1 to T7 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tick", "wheel_size"), [(0.001, 64), (0.0001, 8), (0.02, 4)])
def test_t1_t3_thousands_of_tasks_each_run_once_and_never_early(tick: float, wheel_size: int) -> None:
    rng = random.Random(3)
    lateness: list[float] = []
    done = threading.Semaphore(0)

    with SystemTimer(tick=tick, wheel_size=wheel_size) as timer:

        def callback(deadline: float) -> None:
            lateness.append(timer.time() - deadline)
            done.release()

        for _ in range(3000):
            deadline = timer.time() + rng.choice([0.0, rng.uniform(-0.01, 0.05), rng.uniform(0, 0.4)])
            timer.call_at(deadline, callback, deadline)
        for _ in range(3000):
            assert done.acquire(timeout=PATIENCE)
        assert len(timer) == 0
    assert min(lateness) >= 0
    assert len(lateness) == 3000


def test_t1_a_relative_delay_is_never_cut_short(timer: SystemTimer) -> None:
    waited: list[float] = []
    done = threading.Semaphore(0)

    def callback(started: int, delay: int) -> None:
        waited.append(time.monotonic_ns() - started - delay)
        done.release()

    for number in range(300):
        delay = number * 100_000
        timer.call_later(delay / 1e9, callback, time.monotonic_ns(), delay)
    for _ in range(300):
        assert done.acquire(timeout=PATIENCE)
    assert min(waited) >= 0


def test_t3_tasks_race_with_cancels_from_several_threads_and_each_ends_once() -> None:
    ran: Counter[int] = Counter()
    cancelled: Counter[int] = Counter()
    lock = threading.Lock()
    with SystemTimer(tick=0.0005, wheel_size=16) as timer:
        tasks: list[tuple[int, TimerTask]] = []
        rng = random.Random(4)
        for number in range(6000):
            tasks.append((number, timer.call_later(rng.uniform(0, 0.3), ran.update, [number])))

        def work(seed: int) -> None:
            mine = tasks[:]
            random.Random(seed).shuffle(mine)
            for number, task in mine[:4000]:
                if task.cancel():
                    with lock:
                        cancelled[number] += 1

        workers = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            join(worker)
        wait_until(lambda: len(timer) == 0)
    assert all(ran[number] + cancelled[number] == 1 for number in range(6000))
    assert all(task.cancelled == bool(cancelled[number]) for number, task in tasks)


def test_t3_tasks_race_with_refreshes_starts_and_cancels_and_the_counts_are_exact() -> None:
    ran: Counter[int] = Counter()
    with SystemTimer(tick=0.0005, wheel_size=8) as timer:
        results: list[tuple[int, int]] = []

        def work(seed: int) -> None:
            rng = random.Random(seed)
            mine: list[TimerTask] = []
            started = cancelled = 0
            for _ in range(3000):
                match rng.randrange(3):
                    case 0:
                        mine.append(timer.call_later(rng.uniform(-0.001, 0.05), ran.update, [seed]))
                        started += 1
                    case 1 if mine:
                        rng.choice(mine).refresh()
                    case 2 if mine:
                        cancelled += rng.choice(mine).cancel()
            results.append((started, cancelled))

        workers = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            join(worker)
        wait_until(lambda: len(timer) == 0)
    started, cancelled = (sum(column) for column in zip(*results, strict=True))
    assert ran.total() == started - cancelled
    stats = timer.stats()
    assert (stats.started, stats.cancelled, stats.expired) == (started, cancelled, ran.total())


def test_t5_a_task_never_runs_inside_the_call_that_starts_it_nor_on_its_thread(timer: SystemTimer) -> None:
    threads: list[threading.Thread] = []
    done = threading.Event()
    lock = threading.Lock()

    def callback(last: bool) -> None:
        with lock:  # held by the starter: to run in here would deadlock
            threads.append(threading.current_thread())
        if last:
            done.set()

    assert lock.acquire(timeout=PATIENCE)
    for delay in (0, -1, -1e6):
        timer.call_later(delay, callback, False)
        timer.call_at(-delay, callback, False)
    timer.call_later(0, callback, True)
    lock.release()
    wait_for(done)
    assert {thread.name for thread in threads} == {"test-timer"}


def test_t6_t7_a_backlog_runs_in_order_when_the_thread_gets_to_it(timer: SystemTimer) -> None:
    ran: list[int] = []
    blocked, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        wait_for(go_on)

    timer.call_later(0, block)
    wait_for(blocked)
    now = timer.time()
    order = list(range(1000))
    random.Random(1).shuffle(order)
    for number in order:
        timer.call_at(now + number * 0.002 - 1.9, ran.append, number)
    timer.call_at(now + 0.11, done.set)
    time.sleep(0.05)  # meanwhile the clock passes most of them
    go_on.set()
    wait_for(done)
    assert ran == sorted(ran)
    assert len(ran) >= 950


def test_t3_a_callback_may_cancel_one_that_is_due_with_it(timer: SystemTimer) -> None:
    ran: list[object] = []
    done = threading.Event()
    now = timer.time() + 0.2
    timer.call_at(now, lambda: ran.append(victim.cancel()))
    victim: TimerTask = timer.call_at(now, ran.append, "victim")
    timer.call_at(now, done.set)
    wait_for(done)
    assert ran == [True]


def test_callbacks_may_start_others_without_end(timer: SystemTimer) -> None:
    done = threading.Event()

    def again(times: int) -> None:
        if times:
            timer.call_later(0, again, times - 1)
        else:
            done.set()

    timer.call_later(0, again, 50)
    wait_for(done)


def test_refresh_keeps_a_task_from_running_for_as_long_as_it_goes_on(timer: SystemTimer) -> None:
    ran: list[float] = []
    done = threading.Event()
    task = timer.call_later(0.2, in_turn(lambda: ran.append(timer.time()), done.set))
    refreshed = 0.0
    for _ in range(30):
        time.sleep(0.01)
        refreshed = timer.time()
        if not task.refresh():
            pytest.skip("the machine was too busy to refresh within 0.2 s")
    wait_for(done)
    assert ran[0] >= refreshed + 0.2


# -- T10 -----------------------------------------------------------------------------------------------------


def test_t10_an_idle_timer_neither_wakes_nor_costs_cpu_time(timer: SystemTimer) -> None:
    timer.call_later(3600, int)
    timer.call_later(86_400, int)
    wakeups = quiet(timer)
    clock = time.pthread_getcpuclockid(threads_named("test-timer")[0].ident or 0)
    before = time.clock_gettime_ns(clock)
    time.sleep(0.3)
    assert timer.stats().wakeups == wakeups
    assert time.clock_gettime_ns(clock) == before, "not one instruction of its thread"


def test_t10_with_nothing_pending_it_sleeps_until_called(timer: SystemTimer) -> None:
    done = threading.Event()
    timer.call_later(0, done.set)
    wait_for(done)
    wakeups = quiet(timer)
    time.sleep(0.1)
    assert timer.stats().wakeups == wakeups
    done.clear()
    timer.call_later(0.01, done.set)
    wait_for(done)


def test_t10_an_earlier_deadline_wakes_it_and_later_ones_do_not(timer: SystemTimer) -> None:
    timer.call_later(3600, int)
    wakeups = quiet(timer)
    for delay in (3600, 3601, 4000, 7200, 1e6, float("inf")):
        timer.call_later(delay, int).refresh()
    assert quiet(timer) == wakeups
    done = threading.Event()
    timer.call_later(0.02, done.set)
    wait_for(done)
    assert timer.stats().wakeups > wakeups


def test_t10_starting_and_stopping_time_outs_does_not_wake_it(timer: SystemTimer) -> None:
    timer.call_later(3000, int)
    wakeups = quiet(timer)
    for _ in range(20_000):
        timer.call_later(3600, int).cancel()
    assert quiet(timer) == wakeups


def test_an_earlier_task_is_not_kept_waiting_by_a_far_one(timer: SystemTimer) -> None:
    timer.call_later(3600, int)
    for delay in (30.0, 5.0, 0.05, 0.01):
        quiet(timer)
        done = threading.Event()
        task = timer.call_later(delay, done.set)
        if delay < 1:
            wait_for(done)
        else:
            assert task.pending


def test_a_refresh_to_nearer_wakes_it_too(timer: SystemTimer) -> None:
    # A deadline already past gives a delay below zero, so that a refresh asks for a time before now.
    blocked, go_on, done = threading.Event(), threading.Event(), threading.Event()
    timer.call_later(0, in_turn(blocked.set, lambda: wait_for(go_on)))
    wait_for(blocked)
    task = timer.call_later(0.001, done.set)
    assert task.refresh()
    go_on.set()
    wait_for(done)


def test_after_a_long_idle_time_a_short_delay_still_works(timer: SystemTimer) -> None:
    # The wheel's clock stands still while nothing is pending: a new task is filed from far behind.
    done = threading.Event()
    timer.call_later(0, done.set)
    wait_for(done)
    time.sleep(0.3)
    for delay in (0.0, 0.001, 0.07):
        done.clear()
        timer.call_later(delay, done.set)
        wait_for(done)


def test_a_storm_of_callbacks_in_c_lets_other_threads_run(timer: SystemTimer) -> None:
    # Where a callback is not Python code the interpreter has no occasion to change threads, so the timer makes one.
    blocked, go_on = threading.Event(), threading.Event()
    timer.call_later(0, in_turn(blocked.set, lambda: wait_for(go_on)))
    wait_for(blocked)
    storm = 300_000 if is_compiled() else 30_000
    for _ in range(storm):
        timer.call_later(0, dict)
    go_on.set()
    seen = set()
    while (left := len(timer)) > 0:
        seen.add(left)
        time.sleep(0.0001)
    assert any(0 < left < storm for left in seen)


# -- the thread ----------------------------------------------------------------------------------------------


def test_the_thread_starts_with_the_first_task_has_a_name_and_is_a_daemon() -> None:
    timer = SystemTimer("lazy")
    assert timer.name == "lazy"
    assert threads_named("lazy-timer") == []
    timer.call_later(3600, int)
    (thread,) = threads_named("lazy-timer")
    assert thread.daemon
    timer.call_later(3600, int)
    assert threads_named("lazy-timer") == [thread]
    timer.close()
    assert threads_named("lazy-timer") == []


def test_first_tasks_from_many_threads_start_one_thread() -> None:
    for _ in range(20):
        timer = SystemTimer("many")
        barrier = threading.Barrier(4)

        def work(timer: SystemTimer = timer, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(PATIENCE)
            timer.call_later(3600, int)

        workers = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            join(worker)
        assert len(threads_named("many-timer")) == 1
        assert len(timer.close()) == 4


def test_when_no_thread_can_be_started_the_caller_hears_and_nothing_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    timer = SystemTimer("refused")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            timer.call_later(0, int)
    assert len(timer) == 0
    done = threading.Event()
    timer.call_later(0, done.set)
    wait_for(done)
    timer.close()


def test_a_timer_tells_its_name_and_state() -> None:
    timer = SystemTimer("rpc")
    timer.call_later(3600, int)
    assert repr(timer) == "<SystemTimer 'rpc', 1 pending>"
    timer.close()
    assert repr(timer) == "<SystemTimer 'rpc', closed>"


def test_its_clock_is_the_monotonic_clock(timer: SystemTimer) -> None:
    before = time.monotonic()
    assert before <= timer.time() <= time.monotonic()


# -- executors -----------------------------------------------------------------------------------------------


class KeepingExecutor(Executor):
    """Keeps what is submitted until told to run it."""

    def __init__(self) -> None:
        self.submitted: list[Callable[[], object]] = []
        self.arrived = threading.Semaphore(0)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted.append(lambda: function(*args, **kwargs))
        self.arrived.release()
        return Future()


def test_an_executor_runs_the_callbacks() -> None:
    names: list[str] = []
    done = threading.Semaphore(0)
    with ThreadPoolExecutor(2, thread_name_prefix="pool") as executor, SystemTimer(executor=executor) as timer:
        for _ in range(10):
            timer.call_later(0.001, in_turn(lambda: names.append(threading.current_thread().name), done.release))
        for _ in range(10):
            assert done.acquire(timeout=PATIENCE)
    assert all(name.startswith("pool") for name in names)


def test_t3_a_task_counts_as_run_once_it_has_been_submitted() -> None:
    executor = KeepingExecutor()
    ran: list[int] = []
    with SystemTimer(executor=executor) as timer:
        task = timer.call_later(0, ran.append, 1)
        assert executor.arrived.acquire(timeout=PATIENCE)
        assert not task.cancel()
        assert not task.pending
        assert len(timer) == 0
        assert ran == []
        executor.submitted[0]()
    assert ran == [1]


def test_a_slow_callback_in_an_executor_does_not_delay_the_others() -> None:
    go_on, done = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as executor, SystemTimer(executor=executor) as timer:
        timer.call_later(0, wait_for, go_on)
        timer.call_later(0.005, done.set)
        wait_for(done)
        go_on.set()


def test_t8_errors_in_an_executor_are_reported_too() -> None:
    errors: list[BaseException] = []
    done = threading.Semaphore(0)

    def on_error(error: BaseException, _: object) -> None:
        errors.append(error)
        done.release()

    with ThreadPoolExecutor(1) as executor, SystemTimer(executor=executor, on_error=on_error) as timer:
        timer.call_later(0, sys.exit, 3)
        timer.call_later(0, int, "no number")
        for _ in range(2):
            assert done.acquire(timeout=PATIENCE)
    assert [type(error) for error in errors] == [SystemExit, ValueError]


@pytest.mark.parametrize("refusal", [RuntimeError, SystemExit])
def test_t8_an_executor_that_takes_nothing_is_reported_and_the_timer_goes_on(refusal: type[BaseException]) -> None:
    class Refusing(Executor):
        def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise refusal("no room")

    errors: list[tuple[BaseException, object]] = []
    done = threading.Semaphore(0)

    def on_error(error: BaseException, callback: object) -> None:
        errors.append((error, callback))
        done.release()

    with SystemTimer(executor=Refusing(), on_error=on_error) as timer:
        for _ in range(2):
            timer.call_later(0, int)
            assert done.acquire(timeout=PATIENCE)
        assert timer.stats().failed == 2
    assert [(type(error), callback) for error, callback in errors] == [(refusal, int)] * 2


def test_p7_what_others_wait_for_runs_where_an_executor_refuses_it() -> None:
    class Order(DelayedOperation):
        def try_complete(self) -> bool:
            return False

        def on_expiration(self) -> None:
            ended.release()

    errors: list[str] = []
    idle: list[str] = []
    ended = threading.Semaphore(0)

    def on_idle(peer: str) -> None:
        idle.append(peer)
        ended.release()

    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with SystemTimer(executor=executor, on_error=lambda error, _: errors.append(str(error))) as timer:
        orders, detector = Purgatory("orders", timer), IdleDetector(0.01, on_idle, timer)
        orders.try_complete_else_watch(Order(0), ["k"])
        assert ended.acquire(timeout=PATIENCE)
        for peer in ("one", "other"):
            detector.seen(peer)
            assert ended.acquire(timeout=PATIENCE)
        assert orders.stats().expired == 1
    assert idle == ["one", "other"]
    assert len(errors) >= 3
    assert all("shutdown" in error for error in errors)


@pytest.mark.parametrize("how", ["cancelled", "broken"])
def test_p7_what_others_wait_for_runs_where_an_executor_drops_it(how: str) -> None:
    """`shutdown(cancel_futures=True)`, or a pool whose workers cannot begin: submitted, and then not run."""

    class Order(DelayedOperation):
        def try_complete(self) -> bool:
            return False

        def on_expiration(self) -> None:
            executor_was_free.append(executor._shutdown_lock.acquire(timeout=PATIENCE))
            executor._shutdown_lock.release()
            ended.release()

    def begin() -> None:
        if how == "broken":
            wait_for(go_on)
            raise ValueError(how)

    errors: list[tuple[str, object]] = []
    executor_was_free: list[bool] = []
    ended = threading.Semaphore(0)
    go_on = threading.Event()
    ran: list[int] = []

    def on_error(error: BaseException, callback: object) -> None:
        errors.append((type(error).__name__, callback))
        ended.release()

    executor: Any = ThreadPoolExecutor(1, initializer=begin)
    if how == "cancelled":
        executor.submit(wait_for, go_on)
    with SystemTimer(executor=executor, on_error=on_error) as timer:
        orders, detector = Purgatory("orders", timer), IdleDetector(0.001, lambda _: ended.release(), timer)
        orders.try_complete_else_watch(Order(0), ["k"])
        detector.seen("peer")
        timer.call_later(0.001, ran.append, 1)
        wait_until(lambda: not len(timer))
        timer.call_later(0, wait_for, go_on)  # what the timer's thread is at meanwhile
        if how == "cancelled":
            executor.shutdown(wait=False, cancel_futures=True)
        go_on.set()
        for _ in range(5):
            assert ended.acquire(timeout=PATIENCE)
        assert orders.stats().expired == 1
        assert "peer" not in detector
    executor.shutdown()
    assert ran == []
    assert all(executor_was_free)
    kind = {"cancelled": "CancelledError", "broken": "BrokenThreadPool"}[how]
    assert (kind, ran.append) in errors


def test_t8_an_executor_that_was_shut_down_is_reported() -> None:
    errors: list[BaseException] = []
    done = threading.Event()
    executor = ThreadPoolExecutor(1)
    executor.shutdown()

    def on_error(error: BaseException, _: object) -> None:
        errors.append(error)
        done.set()

    with SystemTimer(executor=executor, on_error=on_error) as timer:
        timer.call_later(0, int)
        wait_for(done)
    assert isinstance(errors[0], RuntimeError)
    assert "shutdown" in str(errors[0])
