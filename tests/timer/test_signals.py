"""A signal handler runs between any two lines of ours, on the main thread, and uses what is half changed there.

It is refused or it is served, and either way nothing is corrupt and nothing hangs.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable

import pytest

from abeyant import IdleDetector, ManualTimer, Purgatory, SystemTimer, TimerTask
from abeyant.engine import is_compiled
from interrupting import interrupting
from purgatory.waits import Wait
from timer.guard import wait_for

pytestmark = [
    pytest.mark.skipif(is_compiled(), reason="compiled, there is no gap for a handler"),
    pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal on this system"),
]
REFUSED = "a finaliser or a signal handler called"


def at_each_line(scene: Callable[[int], int]) -> None:
    """Play `scene` with a signal at its first line, its second, and so on; it returns how many lines it had."""
    at = 1
    while scene(at) >= at:
        at += 1
    assert at > 10, "no line of ours was met"


@pytest.mark.parametrize("action", ["start", "cancel", "refresh", "advance", "close"])
@pytest.mark.parametrize("by_handler", ["start", "cancel", "refresh", "advance", "close"])
def test_t3_t9_a_timer_in_the_middle_of_a_change(action: str, by_handler: str) -> None:
    refused = 0

    def scene(at: int) -> int:
        nonlocal refused
        timer = ManualTimer(wheel_size=4)
        ran: list[int] = []
        handed: list[object] = []
        tasks: list[TimerTask] = []

        def act(what: str, number: int) -> None:
            if what == "start":
                tasks.append(timer.call_later(number * 1e-9, ran.append, 10 + number))
            elif what == "cancel":
                handed.extend([None] * tasks[number].cancel())
            elif what == "refresh":
                tasks[number].refresh()
            elif what == "advance":
                timer.advance(number * 9e-9)
            else:
                handed.extend(timer.close())

        def handler() -> None:
            nonlocal refused
            try:
                act(by_handler, 1)
            except RuntimeError as error:
                if REFUSED in str(error):
                    refused += 1
                else:
                    assert "closed" in str(error)  # noqa: PT017

        for number in range(6):
            tasks.append(timer.call_later((number * 7 + 1) * 1e-9, ran.append, number))
        with interrupting(at, handler) as count:
            try:
                act(action, 2)
            except RuntimeError as error:
                assert "closed" in str(error)  # noqa: PT017
        timer._wheel._check()
        if not timer.closed:
            timer.advance(1e-6)
        assert len(timer) == 0
        assert len(ran) == len(set(ran))
        assert len(ran) + len(handed) == len(tasks), f"at line {at}: each ran, or was cancelled or handed back"
        return count[0]

    at_each_line(scene)
    assert refused


def test_a_detector_in_the_middle_of_a_change() -> None:
    refused = 0

    def scene(at: int) -> int:
        nonlocal refused
        timer = ManualTimer(tick=1, wheel_size=4)
        idle: list[str] = []
        detector = IdleDetector(1, idle.append, timer)
        added: list[str] = []

        def handler() -> None:
            nonlocal refused
            try:
                detector.seen("by the handler")
                added.append("by the handler")
            except RuntimeError as error:
                assert REFUSED in str(error)  # noqa: PT017
                refused += 1

        detector.seen("first")
        with interrupting(at, handler) as count:
            detector.seen("second")
        detector._check()
        timer.advance(1)
        assert sorted(idle) == sorted(["first", "second", *added]), f"at line {at}"
        return count[0]

    at_each_line(scene)
    assert refused


@pytest.mark.parametrize("action", ["submit", "complete alone"])
@pytest.mark.parametrize("by_handler", ["submit another", "complete it", "complete another alone"])
def test_p1_an_operation_in_the_middle_of_its_submission(action: str, by_handler: str) -> None:
    refused = 0

    def scene(at: int) -> int:
        nonlocal refused
        purgatory: Purgatory[Wait] = Purgatory("p", ManualTimer(tick=1, wheel_size=4))
        wait, other = Wait(), Wait()

        def handler() -> None:
            nonlocal refused
            try:
                if by_handler == "submit another":
                    purgatory.try_complete_else_watch(other, ["k"])
                elif by_handler == "complete it":
                    wait.force_complete()
                else:
                    other.force_complete()
            except RuntimeError as error:
                assert REFUSED in str(error)  # noqa: PT017
                refused += 1

        with interrupting(at, handler) as count:
            if action == "submit":
                purgatory.try_complete_else_watch(wait, ["k", "l"])
            else:
                wait.force_complete()
        purgatory._check()
        purgatory.close()
        purgatory._check()
        assert wait.ends == (["complete"] if wait.outcome == "completed" else ["complete", "expire"])
        return count[0]

    at_each_line(scene)
    assert refused


def test_p3_an_operation_is_completed_while_its_timer_cannot_be_stopped(caplog: pytest.LogCaptureFixture) -> None:
    def scene(at: int) -> int:
        timer = ManualTimer(tick=1, wheel_size=4)
        purgatory: Purgatory[Wait] = Purgatory("p", timer)
        wait = Wait()
        purgatory.try_complete_else_watch(wait, ["k"])
        with interrupting(at, wait.force_complete) as count:
            timer.call_later(5, int)
        if count[0] >= at:
            assert wait.ends == ["complete"]
            timer.advance(100)
            assert wait.ends == ["complete"], "the timer finds it ended"
        return count[0]

    at_each_line(scene)
    assert {REFUSED in str(record.exc_info) for record in caplog.records} == {True}, "reported, where it was refused"


def test_a_finaliser_that_submits_while_another_operation_is_being_adopted() -> None:
    """From 3.12 on the collector may run between any two bytecodes: with a plain lock there this hung for ever."""
    purgatory: Purgatory[Wait] = Purgatory("p", ManualTimer(tick=1, wheel_size=4))
    submitted: list[Wait] = []

    class Owner:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            wait = Wait(ready=True)
            purgatory.try_complete_else_watch(wait, ["finaliser"])
            submitted.append(wait)

    done = threading.Event()

    def work() -> None:
        for number in range(2000):
            Owner()
            wait = Wait()
            purgatory.try_complete_else_watch(wait, [number])
            assert wait.force_complete()
        done.set()

    thresholds = gc.get_threshold()
    gc.set_threshold(2, 10**6, 10**6)
    try:
        threading.Thread(target=work, daemon=True).start()
        wait_for(done)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert len(submitted) == 2000, "none was told off"
    purgatory._check()


def test_a_handler_is_served_when_nothing_is_half_changed() -> None:
    ran = threading.Event()
    with SystemTimer() as timer:
        earlier = signal.signal(signal.SIGUSR1, lambda *_: timer.call_later(0, ran.set))
        try:
            signal.raise_signal(signal.SIGUSR1)
            wait_for(ran)
        finally:
            signal.signal(signal.SIGUSR1, earlier)
