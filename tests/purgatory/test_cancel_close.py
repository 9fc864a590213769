"""P7 and cancelling: what is pending ends, or is handed back, and nothing is left behind anywhere."""

from __future__ import annotations

import threading

import pytest

from abeyant.purgatory import Purgatory, PurgatoryClosedError
from abeyant.timer import ManualTimer
from purgatory.waits import Wait, raising


def test_cancel_takes_out_and_leaves_the_end_to_the_caller_p4(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    wait = Wait()
    purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.cancel(wait)
    assert not purgatory.cancel(wait)
    assert purgatory.watched == purgatory.delayed == len(timer) == 0
    assert (wait.outcome, wait.is_completed, wait.ends) == ("cancelled", False, [])
    wait.ready = True
    assert purgatory.check_and_complete("a") == 0
    timer.advance(100)
    assert wait.ends == []
    assert wait.force_complete()
    assert not wait.force_complete()
    assert (wait.outcome, wait.ends) == ("completed", ["complete"])
    stats = purgatory.stats()
    assert (stats.cancelled, stats.completed) == (1, 1)


def test_cancel_of_what_is_not_here(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    other: Purgatory[Wait] = Purgatory("other", timer)
    wait, never = Wait(), Wait()
    other.try_complete_else_watch(wait, ["k"])
    assert not purgatory.cancel(wait)
    assert not purgatory.cancel(never)
    assert wait.outcome is None
    wait.force_complete()
    assert not other.cancel(wait)


def test_cancel_for_key_leaves_the_other_keys_and_the_timer_too(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    """Kafka leaves it watched on its other keys, with no timer."""
    here = [Wait(), Wait()]
    there = Wait()
    for wait in here:
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    purgatory.try_complete_else_watch(there, ["b"])
    assert purgatory.cancel_for_key("a") == here
    assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (1, 1, 1, 1)
    assert purgatory.cancel_for_key("a") == []
    assert purgatory.cancel_for_key("nobody") == []
    here[0].ready = there.ready = True
    assert purgatory.check_and_complete("b") == 1
    assert [wait.force_complete() for wait in here] == [True, True]


def test_cancel_for_key_of_more_than_a_batch(purgatory: Purgatory[Wait]) -> None:
    waits = [Wait() for _ in range(500)]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
    assert purgatory.cancel_for_key("k") == waits


def test_a_try_under_way_cannot_complete_what_was_cancelled_meanwhile(purgatory: Purgatory[Wait]) -> None:
    def cancel(wait: Wait) -> None:
        if wait.ready:
            handed_back.extend(purgatory.cancel_for_key("k"))

    handed_back: list[Wait] = []
    wait = Wait(on_try=cancel)
    purgatory.try_complete_else_watch(wait, ["k"])
    wait.ready = True
    assert purgatory.check_and_complete("k") == 0
    assert handed_back == [wait]
    assert wait.ends == []
    assert wait.force_complete()


def test_close_expires_what_is_pending_by_default_p7(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    """Kafka forgets it."""
    waits = [Wait(), Wait(), Wait(at_completion=raising(ValueError))]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.close() == waits
    assert [wait.ends for wait in waits] == [["complete", "expire"]] * 3
    assert purgatory.watched == purgatory.delayed == len(timer) == 0
    assert purgatory.closed
    assert purgatory.close() == []


def test_close_may_hand_back_instead_p7(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    waits = [Wait(), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.close("cancel") == waits
    assert [wait.calls for wait in waits] == [["try", "try"]] * 2
    assert [wait.outcome for wait in waits] == ["cancelled"] * 2
    assert purgatory.watched == purgatory.delayed == len(timer) == 0
    assert waits[0].force_complete()


def test_close_says_what_it_takes(purgatory: Purgatory[Wait]) -> None:
    with pytest.raises(ValueError, match='how must be "expire" or "cancel"'):
        purgatory.close("drop")  # type: ignore[arg-type]
    assert not purgatory.closed


def test_a_closed_purgatory_refuses_and_the_operation_is_still_good_p7(timer: ManualTimer) -> None:
    """Kafka accepts it, and it never expires."""
    purgatory: Purgatory[Wait] = Purgatory("shut", timer)
    purgatory.close()
    wait = Wait(ready=True)
    with pytest.raises(PurgatoryClosedError, match=r"<Purgatory 'shut', closed> does not accept <Wait pending"):
        purgatory.try_complete_else_watch(wait, ["k"])
    assert wait.calls == []
    assert purgatory.check_and_complete("k") == 0
    assert purgatory.cancel_for_key("k") == []
    assert Purgatory[Wait]("open", timer).try_complete_else_watch(wait, ["k"])


def test_the_context_manager_closes(timer: ManualTimer) -> None:
    wait = Wait()
    with Purgatory[Wait]("p", timer) as purgatory:
        purgatory.try_complete_else_watch(wait, ["k"])
    assert purgatory.closed
    assert wait.ends == ["complete", "expire"]


def test_closing_between_the_tries_refuses_the_operation_p7(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    def close(wait: Wait) -> None:
        purgatory.close()

    wait = Wait(on_try=close)
    with pytest.raises(PurgatoryClosedError):
        purgatory.try_complete_else_watch(wait, ["k"])
    assert wait.calls == ["try"]
    assert len(timer) == purgatory.watched == 0


def test_closing_during_the_second_try_ends_the_operation_p7(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    def close(wait: Wait) -> None:
        if len(wait.calls) == 2:
            purgatory.close()

    wait = Wait(on_try=close)
    assert purgatory.try_complete_else_watch(wait, ["k"])
    assert wait.calls == ["try", "try", "complete", "expire"]
    assert len(timer) == purgatory.watched == 0


def test_an_interruption_while_closing_ends_the_others_all_the_same_p7(
    timer: ManualTimer, purgatory: Purgatory[Wait]
) -> None:
    waits = [Wait(at_completion=raising(KeyboardInterrupt)), Wait(), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
    with pytest.raises(KeyboardInterrupt):
        purgatory.close()
    assert [wait.ends for wait in waits] == [["complete", "expire"]] * 3
    assert len(timer) == purgatory.watched == 0


def test_nothing_slips_past_a_closing_purgatory_p7(timer: ManualTimer) -> None:
    """Submissions from several threads race a close: each is refused, or ended by it."""
    for _ in range(15):
        purgatory: Purgatory[Wait] = Purgatory("p", timer)
        accepted: list[Wait] = []

        def submit(purgatory: Purgatory[Wait] = purgatory, accepted: list[Wait] = accepted) -> None:
            while True:
                wait = Wait()
                try:
                    purgatory.try_complete_else_watch(wait, ["a", "b"])
                except PurgatoryClosedError:
                    return
                accepted.append(wait)

        threads = [threading.Thread(target=submit) for _ in range(3)]
        for thread in threads:
            thread.start()
        ended = purgatory.close()
        for thread in threads:
            thread.join()
        assert {id(wait) for wait in ended} == {id(wait) for wait in accepted}
        assert all(wait.ends == ["complete", "expire"] for wait in accepted)
        assert purgatory.watched == purgatory.delayed == len(timer) == 0
