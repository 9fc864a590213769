"""Operations whose code comes back to the purgatory, and threads that go opposite ways through several."""

from __future__ import annotations

import threading

import pytest

from abeyant.purgatory import Purgatory
from abeyant.purgatory.nesting import DEEPEST
from abeyant.timer import ManualTimer
from purgatory.waits import Wait, in_thread


def test_on_complete_completes_others_on_the_same_key_and_on_another(purgatory: Purgatory[Wait]) -> None:
    def domino(wait: Wait) -> None:
        for other in (second, third):
            other.ready = True
        counts.append(purgatory.check_and_complete("a"))
        counts.append(purgatory.check_and_complete("b"))

    counts: list[int] = []
    first, second, third = Wait(at_completion=domino), Wait(), Wait()
    for wait, keys in ((first, ["a"]), (second, ["a"]), (third, ["b"])):
        purgatory.try_complete_else_watch(wait, keys)
    first.ready = True
    assert purgatory.check_and_complete("a") == 1  # the others were completed by the calls inside
    assert counts == [1, 1]


def test_try_complete_that_completes_its_neighbours(purgatory: Purgatory[Wait]) -> None:
    def poke(wait: Wait) -> None:
        if wait.calls.count("try") == 3:
            neighbour.ready = True
            assert purgatory.check_and_complete("k") == 1

    poker, neighbour = Wait(on_try=poke), Wait()
    for wait in (poker, neighbour):
        purgatory.try_complete_else_watch(wait, ["k"])
    assert purgatory.check_and_complete("k") == 0
    assert neighbour.is_completed
    assert not poker.is_completed


def test_a_change_made_inside_its_own_try_is_not_missed_p2(purgatory: Purgatory[Wait]) -> None:
    """It looks, then something it calls makes its condition true and checks its key. The look must be repeated."""

    def change(wait: Wait) -> None:
        if wait.calls.count("try") == 3:
            wait.ready = True
            assert purgatory.check_and_complete("k") == 0  # it is being tried

    wait = Wait(on_try=change)
    purgatory.try_complete_else_watch(wait, ["k"])
    assert purgatory.check_and_complete("k") == 1
    assert wait.calls == ["try"] * 4 + ["complete"]


def test_a_try_that_always_checks_its_own_key_ends(purgatory: Purgatory[Wait]) -> None:
    """Kafka: the stack overflows."""
    wait = Wait(on_try=lambda wait: purgatory.check_and_complete("k"))
    assert not purgatory.try_complete_else_watch(wait, ["k"])
    assert purgatory.check_and_complete("k") == 0
    assert len(wait.calls) < 30
    wait.ready = True
    assert purgatory.check_and_complete("k") == 1


def test_on_complete_that_waits_again_on_the_same_key_is_tried_at_the_next_check(
    timer: ManualTimer, purgatory: Purgatory[Wait]
) -> None:
    """Heartbeats. The check must not go on for ever with what its own completions submit."""
    sessions = 200
    beats: list[Wait] = []

    def again(wait: Wait) -> None:
        if len(beats) < 10 * sessions:
            beats.append(Wait(10, at_completion=again))
            purgatory.try_complete_else_watch(beats[-1], ["sessions"])
            beats[-1].ready = True

    for _ in range(sessions):
        again(Wait())
    for beat in range(1, 4):
        assert purgatory.check_and_complete("sessions") == sessions
        assert len(beats) == (beat + 1) * sessions
        assert purgatory.watched == len(timer) == sessions


def test_cancelling_and_closing_from_inside(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    def cancel(wait: Wait) -> None:
        assert purgatory.cancel_for_key("k") == [waits[1], waits[2]]
        assert purgatory.close() == [waits[3]]

    waits = [Wait(at_completion=cancel), Wait(), Wait(), Wait()]
    for wait, keys in zip(waits, (["k"], ["k"], ["k"], ["other"]), strict=True):
        purgatory.try_complete_else_watch(wait, keys)
        wait.ready = True
    assert purgatory.check_and_complete("k") == 1
    assert [wait.outcome for wait in waits] == ["completed", "cancelled", "cancelled", "expired"]
    assert len(timer) == 0


def test_time_that_passes_inside_an_operation(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    def pass_time(wait: Wait) -> None:
        timer.advance(10)

    own, neighbour = Wait(on_try=pass_time), Wait()
    purgatory.try_complete_else_watch(neighbour, ["k"])
    own.on_try = None
    purgatory.try_complete_else_watch(own, ["k"])
    own.on_try, own.ready = pass_time, True  # its own deadline passes within its try: it expired, once
    assert purgatory.check_and_complete("k") == 0
    assert own.ends == neighbour.ends == ["complete", "expire"]


@pytest.mark.parametrize("length", [10, 5000])
def test_a_long_chain_of_completions_does_not_overflow_the_stack(purgatory: Purgatory[Wait], length: int) -> None:
    """Each completes the next. Kafka keeps an action queue against this, for callers to empty."""

    def complete_next(wait: Wait) -> None:
        number = int(wait.name) + 1
        if number < length:
            waits[number].ready = True
            purgatory.check_and_complete(number)

    waits = [Wait(name=str(number), at_completion=complete_next) for number in range(length)]
    for number, wait in enumerate(waits):
        purgatory.try_complete_else_watch(wait, [number])
    waits[0].ready = True
    assert purgatory.check_and_complete(0) == 1
    assert all(wait.ends == ["complete"] for wait in waits)


def test_a_long_chain_of_submissions_does_not_overflow_the_stack(purgatory: Purgatory[Wait]) -> None:
    def submit_next(wait: Wait) -> None:
        count.append(1)
        if len(count) < 5000:
            submitted = Wait(ready=True, at_completion=submit_next)
            purgatory.try_complete_else_watch(submitted, ["k"])

    count: list[int] = []
    purgatory.try_complete_else_watch(Wait(ready=True, at_completion=submit_next), ["k"])
    assert len(count) == 5000
    assert DEEPEST < 5000


@pytest.mark.parametrize("action", ["check", "force"])
def test_two_operations_that_complete_each_other_from_two_threads_do_not_deadlock(
    purgatory: Purgatory[Wait], action: str
) -> None:
    """Each holds its own lock when it wants the other's."""
    meet = threading.Barrier(2)
    met: set[str] = set()
    counts: list[object] = []

    def go(wait: Wait) -> None:
        if wait.ready and wait.name not in met:
            met.add(wait.name)
            meet.wait(10)
            other = waits["b" if wait.name == "a" else "a"]
            counts.append(other.force_complete() if action == "force" else purgatory.check_and_complete(other.name))

    waits = {name: Wait(name=name, on_try=go) for name in "ab"}
    for name, wait in waits.items():
        purgatory.try_complete_else_watch(wait, [name])
        wait.ready = True
    threads = [threading.Thread(target=purgatory.check_and_complete, args=[name], daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "deadlock"
    assert waits["a"].ends == waits["b"].ends == ["complete"]
    assert len(counts) == 2


def test_submitting_from_inside_with_a_lock_that_another_thread_holds(
    timer: ManualTimer, purgatory: Purgatory[Wait]
) -> None:
    """The submission does not wait: it is watched and timed at once, and tried when this thread is out."""
    group = threading.RLock()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with group:
            held.set()
            release.wait(10)

    def submit(wait: Wait) -> None:
        assert not purgatory.try_complete_else_watch(ready, ["k"])
        assert not purgatory.try_complete_else_watch(waiting, ["k"])
        seen.append((purgatory.watched, purgatory.delayed, len(timer)))
        assert ready.calls == waiting.calls == []
        release.set()

    seen: list[tuple[int, int, int]] = []
    ready, waiting = Wait(lock=group, ready=True), Wait(lock=group)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    outer = Wait(ready=True, at_completion=submit)
    in_thread(lambda: purgatory.try_complete_else_watch(outer, ["other"]))
    holder.join()
    assert seen == [(2, 2, 2)]
    assert ready.calls == ["try", "complete"]
    assert waiting.calls == ["try"]
    assert purgatory.watched == 1


def test_expiry_inside_an_operation_does_not_wait_for_another(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    held, release = threading.Event(), threading.Event()
    due = Wait(1)
    purgatory.try_complete_else_watch(due, ["k"])

    def hold() -> None:
        with due.lock:  # type: ignore[attr-defined]
            held.set()
            release.wait(10)

    def pass_time(wait: Wait) -> None:
        timer.advance(1)
        assert due.ends == []
        release.set()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    Wait(at_completion=pass_time).force_complete()
    holder.join()
    assert due.ends == ["complete", "expire"]


def test_an_interruption_does_not_cost_the_others_what_was_put_off(purgatory: Purgatory[Wait]) -> None:
    def interrupt(wait: Wait) -> None:
        raise KeyboardInterrupt

    def hold() -> None:
        with group:
            held.set()
            release.wait(10)

    def complete_both(wait: Wait) -> None:
        assert first.force_complete()
        assert second.force_complete()
        release.set()

    group = threading.RLock()
    held, release = threading.Event(), threading.Event()
    first, second = Wait(lock=group, at_completion=interrupt), Wait(lock=group)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    with pytest.raises(KeyboardInterrupt):
        Wait(at_completion=complete_both).force_complete()
    holder.join()
    assert first.ends == second.ends == ["complete"]
