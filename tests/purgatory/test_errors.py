"""P6: an operation's code raises. Nobody else suffers, it is reported once, nothing is left that cannot end."""

from __future__ import annotations

import logging

import pytest

from abeyant.purgatory import Purgatory
from abeyant.timer import ManualTimer, TimerClosedError
from purgatory.waits import Wait, assert_lists_free, raising

Reported = list[tuple[Exception, Wait]]


def raising_at(*calls: int, kind: type[BaseException] = ValueError) -> Wait:
    """Raises at these calls of `try_complete`, counted from 1."""

    def hook(wait: Wait) -> None:
        count = wait.calls.count("try")
        if count in calls:
            raise kind(f"try {count}")

    return Wait(on_try=hook)


def errors_logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    # Not `caplog.text`: a failure in Spark, in any test before, makes PySpark set its own formatter there.
    return [repr(record.exc_info[1]) for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("calls", [(1,), (2,), (1, 2)])
def test_the_submitters_own_error_reaches_it_and_the_operation_stays_watched_and_timed_p6(
    timer: ManualTimer, purgatory: Purgatory[Wait], reported: Reported, calls: tuple[int, ...]
) -> None:
    wait = raising_at(*calls)
    with pytest.raises(ValueError, match=f"try {calls[-1]}") as caught:
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    if len(calls) == 2:
        assert str(caught.value.__context__) == "try 1"
    assert reported == []
    assert wait.calls == ["try", "try"]
    assert (purgatory.watched, purgatory.delayed, len(timer)) == (2, 1, 1)
    timer.advance(10)
    assert wait.ends == ["complete", "expire"]


def test_an_operation_whose_submission_raised_may_still_complete_p6(purgatory: Purgatory[Wait]) -> None:
    wait = raising_at(1, 2)
    with pytest.raises(ValueError, match="try 2"):
        purgatory.try_complete_else_watch(wait, ["a"])
    wait.ready = True
    assert purgatory.check_and_complete("a") == 1


def test_a_first_try_that_raises_and_a_second_that_completes_p6(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    wait = raising_at(1)
    wait.ready = True
    with pytest.raises(ValueError, match="try 1"):
        purgatory.try_complete_else_watch(wait, ["a"])
    assert wait.ends == ["complete"]
    assert purgatory.watched == len(timer) == 0


@pytest.mark.parametrize("ready_at", [1, 2])
def test_on_complete_raising_in_the_submission_reaches_the_submitter_p6(
    timer: ManualTimer, purgatory: Purgatory[Wait], reported: Reported, ready_at: int
) -> None:
    def get_ready(wait: Wait) -> None:
        wait.ready = True

    wait = Wait(ready=ready_at == 1, on_try=get_ready, at_completion=raising(ValueError, "answer"))
    with pytest.raises(ValueError, match="answer"):
        purgatory.try_complete_else_watch(wait, ["a"])
    assert wait.outcome == "completed"
    assert purgatory.watched == len(timer) == 0
    assert reported == []


def test_one_that_raises_starves_no_neighbour_p6(
    timer: ManualTimer, purgatory: Purgatory[Wait], reported: Reported
) -> None:
    waits = [Wait(), raising_at(3), Wait(), raising_at(3), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
        wait.ready = True
    assert purgatory.check_and_complete("k") == 3
    assert [(str(error), wait) for error, wait in reported] == [("try 3", waits[1]), ("try 3", waits[3])]
    assert (purgatory.watched, purgatory.delayed, purgatory.stats().errors) == (2, 2, 2)
    assert purgatory.check_and_complete("k") == 2


def test_on_complete_raising_in_a_check_is_reported_and_counts_p6(
    purgatory: Purgatory[Wait], reported: Reported
) -> None:
    waits = [Wait(at_completion=raising(ValueError)), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
        wait.ready = True
    assert purgatory.check_and_complete("k") == 2
    assert [wait for _, wait in reported] == [waits[0]]


def test_on_complete_raising_does_not_swallow_on_expiration_p6(
    timer: ManualTimer, purgatory: Purgatory[Wait], reported: Reported
) -> None:
    both = Wait(1, at_completion=raising(ValueError), at_expiration=raising(KeyError))
    after = Wait(1)
    purgatory.try_complete_else_watch(both, ["a"])
    purgatory.try_complete_else_watch(after, ["a"])
    timer.advance(1)
    assert both.ends == after.ends == ["complete", "expire"]
    assert [type(error) for error, _ in reported] == [ValueError, KeyError]
    assert timer.stats().failed == 0


def test_without_on_error_it_is_logged_p6(timer: ManualTimer, caplog: pytest.LogCaptureFixture) -> None:
    purgatory: Purgatory[Wait] = Purgatory("quiet", timer)
    purgatory.try_complete_else_watch(raising_at(3), ["k"])
    with caplog.at_level(logging.ERROR, "abeyant.purgatory"):
        purgatory.check_and_complete("k")
    (record,) = caplog.records
    assert "Purgatory 'quiet'" in record.getMessage()
    assert errors_logged(caplog) == ["ValueError('try 3')"]


def test_an_on_error_that_raises_harms_nobody_p6(timer: ManualTimer, caplog: pytest.LogCaptureFixture) -> None:
    def on_error(error: Exception, wait: Wait) -> None:
        raise RuntimeError("on_error")

    purgatory = Purgatory[Wait]("p", timer, on_error=on_error)
    waits = [raising_at(3), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
        wait.ready = True
    with caplog.at_level(logging.ERROR, "abeyant.purgatory"):
        assert purgatory.check_and_complete("k") == 1
    assert errors_logged(caplog) == ["RuntimeError('on_error')", "ValueError('try 3')"]


def test_on_error_runs_with_no_lock_held_p5(timer: ManualTimer) -> None:
    def on_error(error: Exception, wait: Wait) -> None:
        assert_lists_free(purgatory)
        seen.append(wait.force_complete())

    seen: list[bool] = []
    purgatory = Purgatory[Wait]("p", timer, on_error=on_error)
    purgatory.try_complete_else_watch(raising_at(3), ["k"])
    purgatory.check_and_complete("k")
    assert seen == [True]


def test_on_error_must_be_callable(timer: ManualTimer) -> None:
    with pytest.raises(TypeError, match="on_error must be callable"):
        Purgatory[Wait]("p", timer, on_error="print")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("call", [1, 2])
def test_an_interruption_in_a_submission_undoes_it(
    timer: ManualTimer, purgatory: Purgatory[Wait], call: int, kind: type[BaseException]
) -> None:
    wait = raising_at(call, kind=kind)
    with pytest.raises(kind):
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.watched == purgatory.delayed == len(timer) == 0
    assert not wait.is_completed
    assert wait.lock.acquire(False)


def test_an_interruption_in_a_check_propagates_and_leaves_all_watched_and_timed(
    timer: ManualTimer, purgatory: Purgatory[Wait]
) -> None:
    waits = [Wait(), raising_at(3, kind=KeyboardInterrupt), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, ["k"])
        wait.ready = True
    with pytest.raises(KeyboardInterrupt):
        purgatory.check_and_complete("k")
    assert (purgatory.watched, purgatory.delayed, len(timer)) == (2, 2, 2)
    purgatory._check()
    assert purgatory.check_and_complete("k") == 2


def test_an_interruption_in_on_complete_does_not_swallow_on_expiration_p3(
    timer: ManualTimer, purgatory: Purgatory[Wait]
) -> None:
    wait = Wait(1, at_completion=raising(KeyboardInterrupt))
    purgatory.try_complete_else_watch(wait, ["k"])
    with pytest.raises(KeyboardInterrupt):
        timer.advance(1)
    assert wait.ends == ["complete", "expire"]
    assert wait.lock.acquire(False)


def test_a_closed_timer_leaves_nothing_watched_p7() -> None:
    """Kafka accepts it, and it never expires."""
    timer = ManualTimer()
    purgatory: Purgatory[Wait] = Purgatory("p", timer)
    timer.close()
    wait = Wait()
    with pytest.raises(TimerClosedError):
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.watched == purgatory.watched_keys == purgatory.delayed == 0
    assert not wait.is_completed
    assert wait.ends == []
    assert purgatory.try_complete_else_watch(Wait(ready=True), ["a"])  # that needs no timer
    purgatory._check()


def test_a_timer_that_raises_midway_leaves_nothing_watched_p7() -> None:
    class Broken(ManualTimer):
        def call_later(self, delay: object, callback: object, *args: object) -> object:  # type: ignore[override]
            if ready:
                wait.force_complete()
            raise MemoryError("no timer")

    purgatory: Purgatory[Wait] = Purgatory("p", Broken())  # type: ignore[arg-type]
    ready = False
    wait = Wait()
    with pytest.raises(MemoryError):
        purgatory.try_complete_else_watch(wait, ["a", "b"])
    assert purgatory.watched == purgatory.delayed == 0
    ready = True
    wait = Wait()
    assert purgatory.try_complete_else_watch(wait, ["a"])  # completed meanwhile: it needs no timer any more
    assert wait.ends == ["complete"]
    purgatory._check()


@pytest.mark.parametrize("when", ["first try", "second try", "check"])
def test_a_check_from_inside_a_try_that_then_raises_is_not_missed_p2_p6(
    purgatory: Purgatory[Wait], reported: list[tuple[Exception, Wait]], when: str
) -> None:
    """What changed is its own condition, after it had looked; nobody else will check the key again."""
    at = {"first try": 1, "second try": 2, "check": 3}[when]

    def change(wait: Wait) -> None:
        if wait.calls.count("try") == at:
            wait.ready = True
            purgatory.check_and_complete("k")
            raise ValueError("late")

    wait = Wait(on_try=change)
    if when == "check":
        assert not purgatory.try_complete_else_watch(wait, ["k"])
        assert purgatory.check_and_complete("k") == 1
        assert [(str(error), of) for error, of in reported] == [("late", wait)]
    else:
        with pytest.raises(ValueError, match="late"):
            purgatory.try_complete_else_watch(wait, ["k"])
        assert reported == []
    assert wait.calls == ["try"] * (at + 1) + ["complete"]
    assert purgatory.watched == purgatory.delayed == 0


def test_a_try_that_always_checks_itself_and_raises_comes_to_an_end(
    purgatory: Purgatory[Wait], reported: list[tuple[Exception, Wait]]
) -> None:
    def again(wait: Wait) -> None:
        purgatory.check_and_complete("k")
        raise ValueError("again")

    wait = Wait(on_try=again)
    with pytest.raises(ValueError, match="again"):
        purgatory.try_complete_else_watch(wait, ["k"])
    tries = len(wait.calls)
    assert purgatory.check_and_complete("k") == 0
    assert len(reported) == len(wait.calls) - tries < 20
    wait.on_try = None
    wait.ready = True
    assert purgatory.check_and_complete("k") == 1


def test_an_on_complete_that_raises_after_a_check_of_its_own_key_counts_as_completed_p6(
    purgatory: Purgatory[Wait], reported: list[tuple[Exception, Wait]]
) -> None:
    wait = Wait(on_try=lambda wait: purgatory.check_and_complete("k"), at_completion=raising(ValueError, "end"))
    assert not purgatory.try_complete_else_watch(wait, ["k"])
    wait.ready = True
    assert purgatory.check_and_complete("k") == 1
    assert [str(error) for error, _ in reported] == ["end"]
