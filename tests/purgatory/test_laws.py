"""The laws P1-P5 and P8 of docs/design.md, one by one, on the virtual clock; each test names its law."""

from __future__ import annotations

import threading

import pytest

from abeyant.purgatory import DelayedOperation, Purgatory, PurgatoryStats
from abeyant.purgatory.ports import Stoppable
from abeyant.timer import ManualTimer
from purgatory.waits import Wait, assert_lists_free, in_thread


def test_tried_twice_then_watched_and_timed_p2(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    wait = Wait()
    assert not purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert wait.calls == ["try", "try"]
    assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (2, 2, 1, 1)


def test_complete_at_the_first_try_leaves_no_trace(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    wait = Wait(ready=True)
    assert purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert wait.calls == ["try", "complete"]
    assert purgatory.stats() == PurgatoryStats(0, 0, 0, completed=1, expired=0, cancelled=0, errors=0)
    assert timer.stats().started == 0


def test_completed_once_by_a_check_p1_p3(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    first, second = Wait(), Wait()
    assert purgatory.check_and_complete("a") == 0
    purgatory.try_complete_else_watch(first, ["a"])
    purgatory.try_complete_else_watch(second, ["b"])
    assert purgatory.check_and_complete("a") == 0
    first.ready = second.ready = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    assert not second.is_completed
    assert purgatory.check_and_complete("b") == 1
    timer.advance(100)
    assert first.ends == second.ends == ["complete"]


def test_expired_once_with_on_expiration_after_on_complete_p1_p3(
    timer: ManualTimer, purgatory: Purgatory[Wait]
) -> None:
    wait, longer = Wait(5), Wait(50)
    purgatory.try_complete_else_watch(wait, ["a", "b"])
    purgatory.try_complete_else_watch(longer, ["a"])
    timer.advance(4.999)
    assert wait.ends == []
    timer.advance(0.001)
    assert wait.ends == ["complete", "expire"]
    assert wait.outcome == "expired"
    assert wait.is_completed
    wait.ready = True
    assert purgatory.check_and_complete("a") == 0
    assert not wait.force_complete()
    assert wait.ends == ["complete", "expire"]
    assert not longer.is_completed


def test_a_change_between_the_tries_is_not_missed_p2(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    """The worst moment: after the first look, before the watch; so the check that follows it finds nothing."""

    def change(wait: Wait) -> None:
        if not wait.ready:
            wait.ready = True
            in_thread(lambda: purgatory.check_and_complete("a"))

    wait = Wait(on_try=change)
    assert purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert wait.calls == ["try", "try", "complete"]
    assert purgatory.watched == purgatory.delayed == len(timer) == 0


def test_a_change_during_the_second_try_finds_it_watched_p2(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    threads: list[threading.Thread] = []

    def change(wait: Wait) -> None:
        if len(wait.calls) == 2:
            wait.ready = True
            threads.append(threading.Thread(target=purgatory.check_and_complete, args=["b"]))
            threads[0].start()  # waits for the operation's lock, then tries it

    wait = Wait(on_try=change)
    purgatory.try_complete_else_watch(wait, ["a", "b"])
    threads[0].join(10)
    assert wait.calls == ["try", "try", "try", "complete"]
    assert purgatory.watched == purgatory.delayed == len(timer) == 0


class MeddlesomeTimer(ManualTimer):
    """A timer with something happening just before or just after a task starts, as on a busy machine."""

    def __init__(self) -> None:
        super().__init__()
        self.wait = Wait()
        self.moment = ""
        self.purgatory: Purgatory[Wait] = Purgatory("p", self)

    def call_later(self, delay: object, callback: object, *args: object) -> Stoppable:  # type: ignore[override]
        if self.moment == "before":
            assert self.wait.force_complete()
        task = super().call_later(delay, callback, *args)  # type: ignore[arg-type]
        if self.moment == "after":
            assert self.wait.force_complete()
        if self.moment == "cancelled":
            assert self.purgatory.cancel(self.wait)
        return task


@pytest.mark.parametrize("moment", ["before", "after", "cancelled"])
def test_an_operation_that_ends_while_its_timer_starts_leaves_no_timer_p2_p4(moment: str) -> None:
    timer = MeddlesomeTimer()
    purgatory = timer.purgatory
    timer.moment = moment
    assert purgatory.try_complete_else_watch(timer.wait, ["a", "b"]) is (moment != "cancelled")
    assert purgatory.watched == purgatory.delayed == len(timer) == 0
    purgatory._check()


def test_an_end_leaves_every_key_and_the_timer_at_once_p4(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    keys = range(1000)
    waits = [Wait(), Wait(), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, keys)
    assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed) == (3000, 1000, 3)
    waits[1].ready = True
    assert purgatory.check_and_complete(500) == 1
    assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (2000, 1000, 2, 2)
    waits[0].force_complete()
    assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (1000, 1000, 1, 1)
    timer.advance(10)
    assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (0, 0, 0, 0)


def test_off_its_keys_before_its_code_runs_p4(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    seen: list[tuple[int, int, int]] = []

    def look(wait: Wait) -> None:
        seen.append((purgatory.watched, purgatory.delayed, len(timer)))

    wait = Wait(1, at_completion=look, at_expiration=look)
    purgatory.try_complete_else_watch(wait, ["a", "b"])
    timer.advance(1)
    wait = Wait(at_completion=look)
    purgatory.try_complete_else_watch(wait, ["a", "b"])
    wait.force_complete()
    assert seen == [(0, 0, 0)] * 3


def test_operations_on_a_key_are_tried_in_order_of_arrival(purgatory: Purgatory[Wait]) -> None:
    order: list[str] = []
    waits = [Wait(name=str(number), on_try=lambda wait: order.append(wait.name)) for number in range(200)]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
    waits[7].force_complete()
    order.clear()
    assert purgatory.check_and_complete("k") == 0
    assert order == [str(number) for number in range(200) if number != 7]


def test_no_lists_lock_over_an_operations_code_p5(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    def look(wait: Wait) -> None:
        assert_lists_free(purgatory)

    expiring = Wait(1, on_try=look, at_completion=look, at_expiration=look)
    completing = Wait(on_try=look, at_completion=look)
    for wait in (expiring, completing):
        purgatory.try_complete_else_watch(wait, ["k"])
    purgatory.check_and_complete("k")
    completing.ready = True
    assert purgatory.check_and_complete("k") == 1
    timer.advance(1)
    assert expiring.ends == ["complete", "expire"]
    assert purgatory.stats().errors == 0


def test_no_lists_lock_over_the_timer_p5() -> None:
    class Watching(MeddlesomeTimer):
        def call_later(self, delay: object, callback: object, *args: object) -> Stoppable:  # type: ignore[override]
            assert_lists_free(purgatory)
            task = super().call_later(delay, callback, *args)

            class Task:
                def cancel(self) -> bool:
                    assert_lists_free(purgatory)
                    return task.cancel()

            return Task()

    purgatory: Purgatory[Wait] = Purgatory("p", Watching())
    wait = Wait()
    purgatory.try_complete_else_watch(wait, ["k"])
    assert wait.force_complete()


def test_shared_locks_p5(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    """Kafka's groups: the caller holds the group's lock, which is its operations' lock too."""
    group = threading.RLock()
    waits = [Wait(lock=group), Wait(lock=group), Wait(1, lock=group)]
    with group:
        for wait in waits:
            purgatory.try_complete_else_watch(wait, ["g"])
        waits[0].ready = waits[1].ready = True
        assert purgatory.check_and_complete("g") == 2
        assert purgatory.cancel(waits[2])


def test_expiry_waits_for_a_try_and_the_try_wins(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    """The deadline passes while `try_complete` is at it in another thread; it completes. Inclusive, and once."""
    threads: list[threading.Thread] = []

    def time_passes(wait: Wait) -> None:
        if wait.ready:
            threads.append(threading.Thread(target=timer.advance, args=[10]))
            threads[0].start()
            threads[0].join(0.05)  # it is due now, and cannot have the lock
            assert not wait.is_completed

    wait = Wait(10, on_try=time_passes)
    purgatory.try_complete_else_watch(wait, ["k"])
    wait.ready = True
    assert purgatory.check_and_complete("k") == 1
    threads[0].join(10)
    assert wait.ends == ["complete"]
    assert purgatory.stats().expired == 0


def test_one_timer_serves_many_purgatories_and_no_thread_is_added_p8(timer: ManualTimer) -> None:
    before = threading.active_count()
    purgatories: list[Purgatory[Wait]] = [Purgatory(f"p{number}", timer) for number in range(100)]
    waits = [Wait(1 + number) for number in range(100)]
    for purgatory, wait in zip(purgatories, waits, strict=True):
        purgatory.try_complete_else_watch(wait, ["k"])
    assert len(timer) == 100
    timer.advance(50)
    assert [wait.is_completed for wait in waits] == [True] * 50 + [False] * 50
    assert [purgatory.delayed for purgatory in purgatories] == [0] * 50 + [1] * 50
    purgatories[99].close()
    assert waits[99].is_completed
    assert not waits[98].is_completed
    assert threading.active_count() == before


def test_stats_and_repr(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    waits = [Wait(1), Wait(2), Wait(3), Wait(4)]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert repr(purgatory) == "<Purgatory 'test': 4 delayed, 8 watched on 2 keys>"
    timer.advance(1)
    waits[1].force_complete()
    purgatory.cancel(waits[2])
    assert purgatory.stats() == PurgatoryStats(2, 2, 1, completed=1, expired=1, cancelled=1, errors=0)
    assert purgatory.name == "test"
    purgatory.close()
    assert repr(purgatory) == "<Purgatory 'test', closed>"


@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_a_check_returns_a_count_and_not_a_truth(waiting: int) -> None:
    class Gate(DelayedOperation):
        is_open = False

        def try_complete(self) -> bool:
            return Gate.is_open and self.force_complete()

    purgatory: Purgatory[Gate] = Purgatory("count", ManualTimer())
    for _ in range(waiting):
        purgatory.try_complete_else_watch(Gate(1), ["key"])
    Gate.is_open = True
    count = purgatory.check_and_complete("key")
    assert type(count) is int
    assert count == waiting
