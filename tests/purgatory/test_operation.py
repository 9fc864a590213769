"""The operation by itself: Kafka's contract of `force_complete`, time-outs, locks, single use."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import sched
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from datetime import timedelta

import pytest

from abeyant.purgatory import DelayedOperation, OperationReusedError, Purgatory
from abeyant.timer import ManualTimer
from purgatory.waits import Wait, in_thread, raising


def test_force_complete_is_true_exactly_once_p1() -> None:
    wait, untouched = Wait(), Wait()
    assert wait.force_complete()
    assert not wait.force_complete()
    assert (wait.is_completed, wait.outcome) == (True, "completed")
    assert (untouched.is_completed, untouched.outcome) == (False, None)
    assert wait.ends == ["complete"]


def test_force_complete_from_many_threads_is_true_exactly_once_p1() -> None:
    for _ in range(200):
        wait, wins = Wait(), list[bool]()
        start = threading.Barrier(4)

        def force(wait: Wait = wait, wins: list[bool] = wins, start: threading.Barrier = start) -> None:
            start.wait()
            wins.append(wait.force_complete())

        threads = [threading.Thread(target=force) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(wins) == [False, False, False, True]
        assert wait.ends == ["complete"]


def test_what_on_complete_raises_reaches_the_caller_of_force_complete() -> None:
    wait = Wait(at_completion=raising(ValueError, "answer"))
    with pytest.raises(ValueError, match="answer"):
        wait.force_complete()
    assert wait.is_completed
    assert not wait.force_complete()


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(1, 1.0), (0.25, 0.25), (0, 0.0), (-3.5, 0.0), (timedelta(milliseconds=1500), 1.5), (timedelta(-1), 0.0)],
)
def test_timeout_is_seconds_or_timedelta(timeout: float | timedelta, seconds: float) -> None:
    assert Wait(timeout).timeout == seconds


@pytest.mark.parametrize("timeout", [math.nan, math.inf, 1e300, 10**400, timedelta.max, 101 * 366 * 86_400.0])
def test_a_timeout_that_never_comes_is_refused_p7(timeout: float | timedelta) -> None:
    with pytest.raises(ValueError, match="timeout must be a number of seconds up to a hundred years"):
        Wait(timeout)


@pytest.mark.parametrize("timeout", ["30", None, [1.0]])
def test_a_timeout_that_is_no_time_is_refused(timeout: object) -> None:
    with pytest.raises(TypeError, match="timeout must be seconds"):
        Wait(timeout)  # type: ignore[arg-type]


def test_a_hundred_years_are_kept_to_the_second_t2(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    century = 100 * 365 * 86_400.0
    wait = Wait(century)
    purgatory.try_complete_else_watch(wait, ["k"])
    timer.advance(century - 1)
    assert not wait.is_completed
    timer.advance(1)
    assert wait.outcome == "expired"


@pytest.mark.parametrize("timeout", [0, -1, timedelta(seconds=-5)])
def test_a_timeout_already_over_expires_at_the_next_turn_never_in_the_call_t5(
    timer: ManualTimer, purgatory: Purgatory[Wait], timeout: float | timedelta
) -> None:
    wait = Wait(timeout)
    assert not purgatory.try_complete_else_watch(wait, ["k"])
    assert not wait.is_completed
    timer.advance(0)
    assert wait.ends == ["complete", "expire"]


def test_a_condition_already_true_wins_over_a_timeout_already_over(purgatory: Purgatory[Wait]) -> None:
    wait = Wait(-1, ready=True)
    assert purgatory.try_complete_else_watch(wait, ["k"])
    assert wait.outcome == "completed"


def test_a_lock_must_be_reentrant() -> None:
    with pytest.raises(TypeError, match="must be reentrant"):
        Wait(lock=threading.Lock())
    with pytest.raises(TypeError, match=r"must be a lock of threads, .* not <asyncio.* which is for coroutines"):
        Wait(lock=asyncio.Lock())  # type: ignore[arg-type]
    shared = threading.RLock()
    assert Wait(lock=shared).lock is shared


def test_the_operations_lock_is_held_while_its_code_runs(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    free: list[bool] = []

    def look(wait: Wait) -> None:
        def from_elsewhere() -> None:
            taken = wait.lock.acquire(False)
            free.append(taken)
            if taken:
                wait.lock.release()

        in_thread(from_elsewhere)

    wait = Wait(1, on_try=look, at_completion=look, at_expiration=look)
    purgatory.try_complete_else_watch(wait, ["k"])
    purgatory.check_and_complete("k")
    timer.advance(1)
    assert wait.calls == ["try", "try", "try", "complete", "expire"]
    assert free == [False] * 5
    in_thread(lambda: look(wait))
    assert free.pop() is True


def test_an_operation_that_says_nothing_of_its_condition(purgatory: Purgatory[Wait]) -> None:
    bare = DelayedOperation(1.0)
    with pytest.raises(NotImplementedError, match=r"DelayedOperation .*define try_complete\(\)"):
        purgatory.try_complete_else_watch(bare, ["k"])  # type: ignore[arg-type]


def test_returning_true_completes(purgatory: Purgatory[Wait]) -> None:
    class Lenient(Wait):
        def try_complete(self) -> bool:
            return self.ready

    wait = Lenient()
    assert not purgatory.try_complete_else_watch(wait, ["k"])
    wait.ready = True
    assert purgatory.check_and_complete("k") == 1
    assert wait.ends == ["complete"]
    assert purgatory.try_complete_else_watch(Lenient(ready=True), ["k"])


def test_single_use(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    other: Purgatory[Wait] = Purgatory("other", timer)
    waiting, completed = Wait(), Wait(ready=True)
    purgatory.try_complete_else_watch(waiting, ["k"])
    purgatory.try_complete_else_watch(completed, ["k"])
    for wait in (waiting, completed):
        for target in (purgatory, other):
            with pytest.raises(OperationReusedError, match=r"was submitted before, to <Purgatory 'test'"):
                target.try_complete_else_watch(wait, ["k"])
    assert purgatory.watched == 1
    assert waiting.calls == ["try", "try"]


def test_one_of_two_purgatories_gets_it() -> None:
    timer = ManualTimer()
    homes: list[Purgatory[Wait]] = [Purgatory("a", timer), Purgatory("b", timer)]
    for _ in range(200):
        wait, refused = Wait(), list[str]()
        start = threading.Barrier(2)

        def submit(
            home: Purgatory[Wait],
            wait: Wait = wait,
            refused: list[str] = refused,
            start: threading.Barrier = start,
        ) -> None:
            start.wait()
            try:
                home.try_complete_else_watch(wait, ["k"])
            except OperationReusedError:
                refused.append(home.name)

        threads = [threading.Thread(target=submit, args=[home]) for home in homes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 1
        assert homes[0].delayed + homes[1].delayed == 1
        assert wait.force_complete()


def test_completed_before_it_was_submitted(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    wait = Wait()
    wait.force_complete()
    assert purgatory.try_complete_else_watch(wait, ["k"])
    assert wait.calls == ["complete"]
    assert purgatory.watched == len(timer) == 0


def test_subclasses_may_use_the_obvious_names(purgatory: Purgatory[Wait]) -> None:
    class Session(Wait):
        def __init__(self) -> None:
            super().__init__()
            self._lock = self._state = self._timeout = self._home = self._task = self._watches = "mine"

    session = Session()
    purgatory.try_complete_else_watch(session, ["k"])
    assert session.force_complete()
    assert purgatory.watched == 0


def test_a_subclass_that_forgets_init(purgatory: Purgatory[Wait]) -> None:
    class Forgetful(Wait):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"Forgetful not initialised.*super\(\).__init__\(timeout\)"):
        purgatory.try_complete_else_watch(Forgetful(), ["k"])


def test_repr_says_how_it_stands() -> None:
    wait = Wait(2.5)
    assert repr(wait) == "<Wait pending, timeout=2.5s>"
    wait.force_complete()
    assert repr(wait) == "<Wait completed, timeout=2.5s>"


def test_an_ended_operation_is_free_at_once_p4(
    timer: ManualTimer, purgatory: Purgatory[Wait], reported: list[tuple[Exception, Wait]]
) -> None:
    """No purge, no garbage collection: when it has ended, nothing of ours refers to it any more."""

    def end_all() -> list[weakref.ref[Wait]]:
        completed, forced, expired, cancelled = Wait(), Wait(), Wait(1), Wait()
        failing, breaking = Wait(1, at_completion=raising(ValueError)), Wait(on_try=raising(KeyError))
        every = [completed, forced, expired, cancelled, failing, breaking]
        for number, wait in enumerate(every):
            keys = ["shared", f"own{number}"]
            if wait is breaking:
                with pytest.raises(KeyError):
                    purgatory.try_complete_else_watch(wait, keys)
            else:
                purgatory.try_complete_else_watch(wait, keys)
        completed.ready = True
        purgatory.check_and_complete("own0")
        forced.force_complete()
        timer.advance(1)
        purgatory.cancel(cancelled)
        purgatory.check_and_complete("own5")
        breaking.force_complete()
        assert [wait.outcome for wait in every] == [
            "completed", "completed", "expired", "cancelled", "expired", "completed",
        ]  # fmt: skip
        reported.clear()
        return [weakref.ref(wait) for wait in every]

    gc.disable()
    try:
        assert [ref() for ref in end_all()] == [None] * 6
    finally:
        gc.enable()


def test_errors_of_an_operation_in_no_purgatory_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Completed from inside another operation while a third party holds its lock: its code runs later."""
    held, release = threading.Event(), threading.Event()
    target = Wait(at_completion=raising(ValueError, "later"))

    def hold() -> None:
        with target.lock:  # type: ignore[attr-defined]
            held.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    wins: list[bool] = []

    def complete_target(wait: Wait) -> None:
        wins.append(target.force_complete())
        assert target.is_completed
        assert target.calls == []
        release.set()

    with caplog.at_level(logging.ERROR, "abeyant.purgatory"):
        Wait(at_completion=complete_target).force_complete()
    holder.join()
    assert wins == [True]
    assert target.calls == ["complete"]
    assert "later" in caplog.text


def test_an_operation_is_initialised_once(purgatory: Purgatory[Wait]) -> None:
    """A second time would forget its watches and its timer, which would not forget it."""
    wait = Wait()
    purgatory.try_complete_else_watch(wait, ["k"])
    with pytest.raises(TypeError, match="its __init__ has been called before"):
        DelayedOperation.__init__(wait, 5.0)
    assert wait.timeout == 10.0
    assert wait.force_complete()
    assert purgatory.watched == purgatory.delayed == 0


def test_an_operation_whose_arguments_were_refused_is_not_initialised(purgatory: Purgatory[Wait]) -> None:
    wait = Wait.__new__(Wait)
    with pytest.raises(ValueError, match="hundred years"):
        DelayedOperation.__init__(wait, float("nan"))
    with pytest.raises(TypeError, match="not initialised"):
        purgatory.try_complete_else_watch(wait, ["k"])
    DelayedOperation.__init__(wait, 5.0)
    assert wait.timeout == 5.0


def test_one_that_was_completed_before_its_submission_leaves_no_watch_behind_and_is_counted_p4() -> None:
    purgatory: Purgatory[Wait] = Purgatory("p", ManualTimer())

    def submit(count: int) -> None:
        for number in range(count):
            wait = Wait()
            assert wait.force_complete()
            assert purgatory.try_complete_else_watch(wait, [number, "hot", 3, 4.5])
            assert wait.calls == ["complete"], "not tried, for it has ended"
            with pytest.raises(OperationReusedError):
                purgatory.try_complete_else_watch(wait, ["k"])

    submit(100)
    tracemalloc.start()
    submit(2900)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 100_000, "bytes; its watches would take four times as many"
    assert purgatory.stats().completed == 3000
    assert purgatory.watched == purgatory.delayed == 0
    purgatory._check()


def test_a_timer_of_somebody_elses_that_cannot_cancel_what_has_run_costs_no_hook_p3() -> None:
    """As `sched` does: `cancel` of an event that is not in its queue raises ValueError."""
    clock = [0.0]
    scheduler = sched.scheduler(lambda: clock[0], lambda delay: clock.__setitem__(0, clock[0] + delay))

    class Event:
        def __init__(self, event: sched.Event) -> None:
            self.event = event

        def cancel(self) -> bool:
            scheduler.cancel(self.event)
            return True

    class Scheduler:
        def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Event:
            return Event(scheduler.enter(delay, 0, callback, args))

    reported: list[str] = []
    purgatory: Purgatory[Wait] = Purgatory("p", Scheduler(), on_error=lambda error, _: reported.append(repr(error)))
    expires, completes, stolen = Wait(1), Wait(2), Wait(3)
    for wait in (expires, completes, stolen):
        purgatory.try_complete_else_watch(wait, ["k"])
    assert completes.force_complete()
    assert len(scheduler.queue) == 2
    scheduler.cancel(scheduler.queue[1])  # behind the purgatory's back
    assert stolen.force_complete()
    scheduler.run()
    assert expires.ends == ["complete", "expire"]
    assert completes.ends == stolen.ends == ["complete"]
    assert len(reported) == 1, "of the one that was stopped behind its back; none of what has run is cancelled"
    assert "ValueError" in reported[0]
    assert purgatory.stats().errors == 1
    assert purgatory.delayed == 0
