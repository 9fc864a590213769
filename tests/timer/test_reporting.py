"""T8 where nobody can be told: the report of an error fails as well, and still harms no other task."""

from __future__ import annotations

import ctypes
import logging
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

import abeyant.timer.system
from abeyant import ManualTimer, Purgatory, SystemTimer, Timer, TimerClosedError
from broken_log import KINDS, LogError, broken_log
from purgatory.waits import Wait
from timer.guard import join, threads_named, wait_for
from waiting import wait_until


class Unshowable:
    """A callback that raises, and whose repr raises besides."""

    def __call__(self) -> None:
        raise LookupError("from a callback")

    def __repr__(self) -> str:
        raise LogError("the repr")


def fail() -> None:
    raise LookupError("from a callback")


def run_both(timer: Timer, first: Callable[[], object]) -> None:
    """Run `first`, and after it another task, which must run all the same."""
    done = threading.Event()
    timer.call_later(0, first)
    timer.call_later(0.001, done.set)
    if isinstance(timer, ManualTimer):
        timer.advance(1)
    wait_for(done)


both_timers = pytest.mark.parametrize("make", [ManualTimer, SystemTimer])


@both_timers
@pytest.mark.parametrize("kind", KINDS)
def test_t8_a_log_that_raises_harms_no_other_and_both_errors_are_seen(make: Callable[[], Timer], kind: str) -> None:
    with broken_log(kind) as unraisable, make() as timer:
        run_both(timer, fail)
        assert timer.stats().failed == 1
        run_both(timer, int)
    assert [(type(error), type(error.__context__)) for error in unraisable] == [(LogError, LookupError)]


@both_timers
def test_t8_a_callback_that_cannot_be_shown_is_reported_all_the_same(
    make: Callable[[], Timer], caplog: pytest.LogCaptureFixture
) -> None:
    with make() as timer:
        run_both(timer, Unshowable())
    (record,) = caplog.records
    assert "<Unshowable at 0x" in record.getMessage()
    assert "whose repr raised LogError" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


@both_timers
def test_t8_on_error_and_the_log_both_raise(make: Callable[..., Timer]) -> None:
    def on_error(error: BaseException, callback: object) -> None:
        raise KeyError("from the handler")

    with broken_log("handler") as unraisable, make(on_error=on_error) as timer:
        run_both(timer, fail)
    assert [type(error) for error in unraisable] == [LogError, LogError], "the handler's error, and the callback's"


def test_t8_an_executor_that_refuses_and_a_log_that_raises() -> None:
    class Full:
        def submit(self, *_: object) -> None:
            raise RuntimeError("full")

    with broken_log("handler") as unraisable, SystemTimer("full", executor=Full()) as timer:  # type: ignore[arg-type]
        timer.call_later(0, int)
        timer.call_later(0.001, int)
        wait_until(lambda: len(unraisable) == 2)
        assert len(threads_named("full-timer")) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_p6_a_log_that_raises_costs_neither_the_checker_nor_the_neighbours(kind: str) -> None:
    purgatory: Purgatory[Wait] = Purgatory("unheard", ManualTimer())
    raises = Wait(on_try=lambda wait: fail() if wait.ready else None)
    neighbour = Wait()
    for wait in (raises, neighbour):
        purgatory.try_complete_else_watch(wait, ["key"])
        wait.ready = True
    with broken_log(kind) as unraisable:
        assert purgatory.check_and_complete("key") == 1
    assert neighbour.outcome == "completed"
    assert raises.outcome is None
    assert purgatory.delayed == 1
    assert purgatory.stats().errors == 1
    assert [type(error.__context__) for error in unraisable] == [LookupError]


def test_p6_an_operation_that_cannot_be_shown_is_reported_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    class Mute(Wait):
        def __repr__(self) -> str:
            raise LogError("the repr")

    timer = ManualTimer()
    purgatory: Purgatory[Wait] = Purgatory("mute", timer)
    wait = Mute(1, at_completion=lambda _: fail())
    purgatory.try_complete_else_watch(wait, ["key"])
    assert timer.advance(1) == 1
    assert wait.ends == ["complete", "expire"], "P3"
    assert ["<Mute at 0x" in record.getMessage() for record in caplog.records] == [True]


# -- a thread that ends all the same -------------------------------------------------------------------------


def end_the_thread_of(timer: SystemTimer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let memory run out in what the thread itself calls, outside of any callback: it pauses while a storm lasts."""

    def exhausted(_: float) -> None:
        raise MemoryError

    gate, pause = threading.Event(), threading.Event()
    timer.call_later(0, gate.wait)
    for _ in range(63):
        timer.call_later(-1, pause.wait, 0.0002)  # due by now, so that the thread does not sleep before it
    (thread,) = threads_named(f"{timer.name}-timer")
    monkeypatch.setattr(abeyant.timer.system, "time", types.SimpleNamespace(sleep=exhausted))
    gate.set()
    join(thread)
    monkeypatch.undo()


def test_t8_a_timer_whose_thread_ends_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    timer = SystemTimer("ending")
    last = timer.call_later(3600, int)
    end_the_thread_of(timer, monkeypatch)
    assert last.pending, "close hands it back"
    assert "its thread was ended by MemoryError" in repr(timer)
    assert "MemoryError" in str(timer.stats().failure)
    with pytest.raises(TimerClosedError, match="MemoryError"):
        timer.call_later(0, int)
    purgatory: Purgatory[Wait] = Purgatory("on it", timer)
    with pytest.raises(TimerClosedError, match="MemoryError"):
        purgatory.try_complete_else_watch(Wait(), ["key"])
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "1 pending" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], MemoryError)
    assert [task.callback for task in timer.close()] == [int]
    assert timer.close() == []


def test_t8_on_error_is_told_of_a_thread_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Any, Any]] = []
    timer = SystemTimer("ending", on_error=lambda error, callback: told.append((type(error), callback)))
    end_the_thread_of(timer, monkeypatch)
    assert told == [(MemoryError, timer._turn)], "it was no callback of the user's"


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="no C interface")
def test_t8_an_exception_sent_to_the_thread_never_ends_it_silently() -> None:
    reported: list[BaseException] = []
    for _ in range(20):
        reported.clear()
        timer = SystemTimer("struck", on_error=lambda error, _: reported.append(error))
        ready, done = threading.Event(), threading.Event()
        timer.call_later(0, ready.set)
        wait_for(ready)
        (thread,) = threads_named("struck-timer")
        assert thread.ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        try:
            timer.call_later(0, int)
            timer.call_later(0, done.set)
        except TimerClosedError:
            pass
        wait_until(lambda done=done: bool(reported) or done.is_set())  # type: ignore[misc]
        if timer.stats().failure is None:
            timer.call_later(0, done.set)
            wait_for(done)
        else:
            with pytest.raises(TimerClosedError):
                timer.call_later(0, int)
        timer.close()
        join(thread)
