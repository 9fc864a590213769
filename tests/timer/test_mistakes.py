"""What can only be a mistake is refused at once, by name; what was never made says so."""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

import abeyant
from abeyant import IdleDetector, ManualTimer, Purgatory, SystemTimer, Timer, TimerTask, aio
from purgatory.waits import Wait

# Mistakes that a type checker would find: here nothing of the package is typed.
untyped: Any = SimpleNamespace(aio=aio, **{name: getattr(abeyant, name) for name in abeyant.__all__})


async def late(*_: object) -> None:
    raise AssertionError


class Caller:
    async def method(self, *_: object) -> None:
        raise AssertionError


# -- async def -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ManualTimer, SystemTimer])
@pytest.mark.parametrize("callback", [late, Caller().method])
def test_an_async_def_is_no_callback(make: Callable[[], Timer], callback: Callable[..., object]) -> None:
    with make() as timer:
        with pytest.raises(TypeError, match=r"a plain function, not <.*(late|method).*, which nobody would await"):
            timer.call_later(0, callback)
        with pytest.raises(TypeError, match=r"callback must be a plain function"):
            timer.call_at(0, callback)
        assert len(timer) == 0


def test_t8_a_callback_that_returns_a_coroutine_is_reported() -> None:
    reported: list[BaseException] = []
    timer = ManualTimer(on_error=lambda error, _: reported.append(error))
    timer.call_later(1, functools.partial(late, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "was never awaited"
        assert timer.advance(1) == 1
    assert "returned a coroutine" in str(reported[0])
    assert timer.stats().failed == 1


def test_an_async_on_error_is_refused() -> None:
    timer = ManualTimer()
    makers: list[Any] = [ManualTimer, SystemTimer, functools.partial(Purgatory, "p", timer)]
    for make in makers:
        for handler in (late, functools.partial(late, 1)):
            with pytest.raises(TypeError, match="on_error must be a plain function"):
                make(on_error=handler)
        with pytest.raises(TypeError, match="on_error must be callable, not 3"):
            make(on_error=3)


@pytest.mark.parametrize("name", ["try_complete", "on_complete", "on_expiration"])
def test_an_operation_with_an_async_def_is_told_of_by_name(name: str) -> None:
    reported: list[str] = []
    timer = ManualTimer()
    purgatory: Purgatory[Wait] = Purgatory("p", timer, on_error=lambda error, _: reported.append(str(error)))
    hasty: Any = type("Hasty", (Wait,), {name: functools.partialmethod(late)})
    words = rf"Hasty\.{name} must be a plain function, not async"
    wait = hasty(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "was never awaited"
        if name == "try_complete":
            with pytest.raises(TypeError, match=words):
                purgatory.try_complete_else_watch(wait, ["k"])
            assert (wait.outcome, purgatory.delayed) == (None, 1), "P6: it does not complete, and will expire"
            purgatory.check_and_complete("k")
        else:
            purgatory.try_complete_else_watch(wait, ["k"])
        timer.advance(1)
        if name == "on_complete":
            with pytest.raises(TypeError, match=words):
                hasty(1).force_complete()
    assert wait.outcome == "expired"
    assert [re.match(words, error) is not None for error in reported] == [True]


def test_an_async_def_is_refused_in_asyncio_too() -> None:
    async def main() -> None:
        timer = aio.Timer()
        with pytest.raises(TypeError, match="callback must be a plain function"):
            timer.call_later(0, late)
        with pytest.raises(TypeError, match="callback must be a plain function"):
            timer.call_at(0, late)
        with pytest.raises(TypeError, match="until must be a plain function"):
            await aio.Purgatory("p").wait(["k"], until=late, timeout=1)

    asyncio.run(main())


# -- arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: untyped.SystemTimer(executor=3), "executor must be a concurrent.futures.Executor, not 3"),
        (
            lambda: untyped.SystemTimer(executor=ThreadPoolExecutor),
            "executor must be .*, not <class",
        ),
        (lambda: untyped.SystemTimer(executor=ProcessPoolExecutor()), "executor must run callbacks in this process"),
        (lambda: untyped.SystemTimer(0.01), "name must be a str, the name of the timer's thread, not 0.01"),
        (lambda: untyped.Purgatory("x", None), "timer must be a SystemTimer, or have a call_later\\(\\), not None"),
        (lambda: untyped.Purgatory("x", ManualTimer), "timer must be .*, not <class"),
        (lambda: untyped.Purgatory("x"), "timer must be .*, not None"),
        (lambda: untyped.Purgatory(ManualTimer()), "a purgatory needs a name and a timer, as in .*, not <ManualTimer"),
        (lambda: untyped.Purgatory("x", ManualTimer()).cancel(None), "expected a DelayedOperation, not None"),
        (lambda: untyped.Purgatory("x", ManualTimer()).cancel("op"), "expected a DelayedOperation, not 'op'"),
        (lambda: untyped.DelayedOperation(1, lock=3), "lock must be a threading.RLock, or have its .*, not 3"),
        (lambda: untyped.aio.Purgatory(ManualTimer()), "needs a name, as in Purgatory.*, not <ManualTimer"),
        (lambda: untyped.aio.Timer(3), "loop must be an asyncio event loop, not 3"),
    ],
)
def test_a_mistake_is_refused_at_once_by_name(mistake: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        mistake()


# -- copies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["manual", "system", "aio timer", "task", "detector", "purgatory", "aio purgatory"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copy_shares_what_there_is_one_of(what: str, copied: Callable[[object], object]) -> None:
    with asyncio.Runner() as runner, SystemTimer() as system:
        manual = ManualTimer()
        thing = {
            "manual": manual,
            "system": system,
            "aio timer": aio.Timer(runner.get_loop()),
            "task": manual.call_later(5, int),
            "detector": IdleDetector(1, print, manual),
            "purgatory": Purgatory("p", manual),
            "aio purgatory": aio.Purgatory("p"),
        }[what]
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copied(thing)
        assert len(manual) == 1


# -- what was never made, or twice ---------------------------------------------------------------------------

FORGETFUL = """
import asyncio, sys
import abeyant
from abeyant import aio, DelayedOperation, IdleDetector, ManualTimer, Purgatory, SystemTimer, TimerTask
from abeyant.aio.handle import TimerHandle

def forgetful(kind):
    return type("Forgetful", (kind,), {"__init__": lambda self: None})

def refused(call, *args):
    try:
        call(*args)
    except (AttributeError, TypeError, RuntimeError):
        return
    print(call, "was not refused")

for kind in (ManualTimer, SystemTimer, aio.Timer):
    for timer in (forgetful(kind)(), kind.__new__(kind)):
        for method, *args in [("call_later", 1, int), ("call_at", 1, int), ("next_expiration",), ("stats",),
                              ("__len__",), ("close",)]:
            refused(getattr(timer, method), *args)
        refused(lambda: IdleDetector(1, print, timer))
        refused(lambda: Purgatory("p", timer).try_complete_else_watch(DelayedOperation(1), ["k"]))
        bool(timer)
        for method, *args in [("__repr__",), ("time",), ("advance", 1), ("__exit__", None, None, None)]:
            try:
                getattr(timer, method, int)(*args)
            except Exception:
                pass
detector = forgetful(IdleDetector)()
for method, *args in [("seen", 1), ("forget", 1), ("idle_for", 1), ("stats",), ("close",), ("__len__",),
                      ("__contains__", 1)]:
    refused(getattr(detector, method), *args)
for method, *args in [("try_complete_else_watch", DelayedOperation(1), ["k"]), ("check_and_complete", "k"),
                      ("cancel_for_key", "k"), ("stats",), ("close",)]:
    refused(getattr(forgetful(Purgatory)(), method), *args)
task = TimerTask.__new__(TimerTask)
for method in ("cancel", "refresh", "__repr__"):
    try:
        assert not getattr(task, method)() or method == "__repr__"
    except AttributeError:
        pass
handle = TimerHandle.__new__(TimerHandle)
for method in ("cancel", "_run", "__repr__", "when"):
    try:
        getattr(handle, method)()
    except Exception:
        pass

class Reader(aio.EventLoop):
    def __init__(self):
        refused(lambda: self.time())
        refused(lambda: self.call_later(1, int))
        super().__init__()

Reader().close()
print("alive")
"""


def test_a_subclass_that_forgets_to_call_init_is_told_and_does_not_crash() -> None:
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", FORGETFUL], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("alive\n", 0), ran.stderr


@pytest.mark.parametrize("make", [lambda: ManualTimer(start=7), SystemTimer])
def test_a_second_init_is_refused_and_changes_nothing(make: Callable[[], Any]) -> None:
    with make() as timer:
        before = timer.time()
        task = timer.call_later(3600, int)
        with pytest.raises(TypeError, match="its __init__ has been called before"):
            timer.__init__()
        assert timer.time() >= before
        assert task.pending
        assert len(timer) == 1


def test_a_second_init_of_a_detector_or_a_purgatory_is_refused() -> None:
    timer = ManualTimer()
    detector = IdleDetector(1, print, timer)
    detector.seen("peer")
    purgatory: Purgatory[Wait] = Purgatory("p", timer)
    purgatory.try_complete_else_watch(Wait(1), ["k"])
    with pytest.raises(TypeError, match="its __init__ has been called before"):
        detector.__init__(1, print, timer)  # type: ignore[misc]
    with pytest.raises(TypeError, match="its __init__ has been called before"):
        purgatory.__init__("p", timer)  # type: ignore[misc]
    assert len(detector) == purgatory.delayed == 1
    purgatory.close()


def test_a_task_that_no_timer_made_is_nobodys() -> None:
    task = TimerTask.__new__(TimerTask)
    try:
        assert not task.cancel()
        assert not task.refresh()
        assert not task.pending
    except AttributeError:  # interpreted
        pass
