"""What the garbage collector sees: nothing of ours for a pending operation, and every cycle to be freed."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from abeyant.engine import is_compiled
from abeyant.mutex import LOCKED
from abeyant.purgatory import DelayedOperation, Purgatory
from abeyant.timer import ManualTimer
from collecting import collecting
from purgatory.waits import Wait, in_thread


class Key:
    """A key that refers to whatever it is told, equal to itself only."""

    def __init__(self, *refers: object) -> None:
        self.refers = refers


@contextmanager
def no_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("cycle", ["operation", "key", "on_error", "none"])
def test_a_purgatory_dropped_with_its_timer_and_pending_operations_is_freed(cycle: str) -> None:
    def make() -> list[weakref.ref[object]]:
        timer = ManualTimer()
        errors: list[object] = []
        purgatory: Purgatory[Wait] = Purgatory("p", timer, on_error=lambda error, wait: errors.append(wait))
        errors.append(purgatory if cycle == "on_error" else None)
        waits = [Wait(), Wait(), Wait(), Wait()]
        keys = [Key(), Key()]
        for wait in waits[:3]:
            purgatory.try_complete_else_watch(wait, [*keys, "plain"])
        waits[0].force_complete()
        waits[3].force_complete()
        if cycle == "operation":
            waits[1].refers = [purgatory, timer, waits]  # type: ignore[attr-defined]
        elif cycle == "key":
            keys[0].refers = (purgatory, timer, waits)
        return [weakref.ref(thing) for thing in (timer, purgatory, *waits, *keys)]

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)


def test_a_purgatory_that_was_dropped_still_expires_what_is_in_it_and_then_is_free_at_once() -> None:
    timer = ManualTimer()

    def make() -> tuple[weakref.ref[object], weakref.ref[object], list[str]]:
        purgatory: Purgatory[Wait] = Purgatory("p", timer)
        wait = Wait(5)
        purgatory.try_complete_else_watch(wait, ["k"])
        return weakref.ref(purgatory), weakref.ref(wait), wait.calls

    with no_collection():
        purgatory, wait, calls = make()
        assert wait() is not None
        timer.advance(5)
        assert calls == ["try", "try", "complete", "expire"]
        assert purgatory() is None
        assert wait() is None


@pytest.mark.skipif(not is_compiled(), reason="interpreted, timers' handles are seen too")
def test_of_a_pending_operation_the_collector_sees_itself_and_what_the_timer_holds() -> None:
    timer = ManualTimer()
    purgatory: Purgatory[DelayedOperation] = Purgatory("p", timer)

    class Bare(DelayedOperation):
        __slots__ = ()

        def try_complete(self) -> bool:
            return False

    count = 5_000
    gc.collect()
    before = len(gc.get_objects())
    for number in range(count):
        purgatory.try_complete_else_watch(Bare(10.0), (number, "a", "b"))
    seen = len(gc.get_objects()) - before
    assert purgatory.watched == 3 * count
    locks = count if LOCKED else 0  # a free-threaded interpreter needs one an operation
    assert seen <= 2 * count + locks + 100, f"{seen / count:.2f} objects an operation"
    purgatory.close("cancel")


def test_an_operation_cannot_be_copied() -> None:
    """The copy would claim the original's watches."""
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            make(Wait())


def test_what_was_never_initialised_says_so() -> None:
    class Forgetful(Purgatory[Wait]):
        def __init__(self) -> None:
            pass

    purgatory = Forgetful()
    for call in (purgatory.stats, purgatory.close, lambda: purgatory.check_and_complete("k")):
        with pytest.raises(AttributeError):
            call()
    with pytest.raises(AttributeError):
        purgatory.try_complete_else_watch(Wait(), ["k"])


@pytest.mark.skipif(not is_compiled(), reason="interpreted, such a finaliser is told off: see test_keys.py")
@pytest.mark.parametrize("pending", [0, 1, 20, *range(60, 67), *range(125, 132)])
@pytest.mark.parametrize("step", ["submit", "check", "expire", "cancel", "close"])
def test_a_finaliser_may_use_the_purgatory_in_the_middle_of_any_call(step: str, pending: int) -> None:
    """Its slots and its table are just growing at some of these sizes."""
    collection = 0
    while True:
        collection += 1
        timer = ManualTimer()
        purgatory: Purgatory[Wait] = Purgatory("p", timer)
        waits = [Wait(5 if number % 2 else 50) for number in range(pending)]
        for number, wait in enumerate(waits):
            purgatory.try_complete_else_watch(wait, [number, "hot"])
        extra = [Wait(5) for _ in range(40)]
        main = Wait(5)
        if step != "submit":
            purgatory.try_complete_else_watch(main, ["main", 3, "hot"])

        def finaliser(
            purgatory: Purgatory[Wait] = purgatory, waits: list[Wait] = waits, extra: list[Wait] = extra
        ) -> None:
            if not purgatory.closed:
                for number, wait in enumerate(extra):
                    purgatory.try_complete_else_watch(wait, [("extra", number), "main", "hot"])
            for wait in waits[::3]:
                wait.force_complete()
            purgatory.check_and_complete("hot")
            purgatory._check()

        with collecting(collection, finaliser) as count:
            if step == "submit":
                purgatory.try_complete_else_watch(main, ["main", 3, "hot"])
            elif step == "check":
                main.ready = True
                purgatory.check_and_complete("main")
            elif step == "expire":
                timer.advance(5)
            elif step == "cancel":
                purgatory.cancel_for_key("hot")
            else:
                purgatory.close()
        purgatory._check()
        timer.advance(100)
        purgatory.close()
        purgatory._check()
        assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (0, 0, 0, 0)
        for wait in [*waits, main, *extra]:
            assert len(wait.ends) == len(set(wait.ends)), "an end twice"
            if wait in extra and not wait.calls:
                continue
            assert wait.outcome is not None
        if count[0] < collection:
            break  # it has no more allocations than that


def test_the_lock_asked_for_while_it_is_held_is_held_by_who_holds_it(purgatory: Purgatory[Wait]) -> None:
    """Compiled, an operation's own lock is made when it is first asked for."""
    free: list[bool] = []

    def look(wait: Wait) -> None:
        with wait.lock:  # type: ignore[attr-defined]
            in_thread(lambda: free.append(wait.lock.acquire(False)))

    wait = Wait(ready=True, at_completion=look)
    assert purgatory.try_complete_else_watch(wait, ["k"])  # in its try, in its force_complete, in its on_complete
    assert free == [False]

    def take() -> None:
        free.append(wait.lock.acquire(False))
        wait.lock.release()

    in_thread(take)
    assert free == [False, True]


def test_a_thread_that_has_to_wait_for_an_operations_own_lock_gets_it(purgatory: Purgatory[Wait]) -> None:
    entered, proceed = threading.Event(), threading.Event()

    def hold(wait: Wait) -> None:
        if wait.ready and not entered.is_set():
            entered.set()
            assert proceed.wait(10)
            wait.ready = False  # the condition held when it looked; this try completes it

    for _ in range(20):
        entered.clear()
        proceed.clear()
        wait = Wait(on_try=hold)
        purgatory.try_complete_else_watch(wait, ["k"])
        wait.ready = True
        counts: list[int] = []
        threads = [
            threading.Thread(target=lambda counts=counts: counts.append(purgatory.check_and_complete("k")))
            for _ in range(4)
        ]
        threads[0].start()
        assert entered.wait(10)
        for thread in threads[1:]:
            thread.start()
        proceed.set()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert sorted(counts) == [0, 0, 0, 1]
        assert wait.ends == ["complete"]
