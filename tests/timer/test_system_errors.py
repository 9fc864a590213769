"""T8 on the timer's own thread: whatever is raised is reported, and harms no other task."""

from __future__ import annotations

import logging
import threading

import pytest

from abeyant import SystemTimer
from timer.guard import threads_named, wait_for
from waiting import wait_until

RAISED = [LookupError, SystemExit, KeyboardInterrupt, GeneratorExit, BaseException]


def raiser(error: type[BaseException]) -> None:
    raise error("from a callback")


@pytest.mark.parametrize("error", RAISED)
def test_t8_on_error_gets_whatever_a_callback_raises_and_the_next_one_runs(error: type[BaseException]) -> None:
    reported: list[tuple[BaseException, object, str]] = []
    done = threading.Event()

    def on_error(raised: BaseException, callback: object) -> None:
        reported.append((raised, callback, threading.current_thread().name))

    with SystemTimer("errors", on_error=on_error) as timer:
        timer.call_later(0, raiser, error)
        timer.call_later(0.001, done.set)
        wait_for(done)
        assert timer.stats().failed == 1
    ((raised, callback, thread),) = reported
    assert type(raised) is error
    assert callback is raiser
    assert thread == "errors-timer"


@pytest.mark.parametrize("error", RAISED)
def test_t8_without_on_error_it_is_logged(error: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    with SystemTimer("errors") as timer:
        timer.call_later(0, raiser, error)
        timer.call_later(0.001, done.set)
        wait_for(done)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.name == "abeyant.timer"
    assert "raiser" in record.getMessage()
    assert record.exc_info is not None
    assert type(record.exc_info[1]) is error


@pytest.mark.parametrize("raised", [LookupError, SystemExit])
@pytest.mark.parametrize("broken", RAISED)
def test_t8_an_on_error_that_raises_does_not_stop_the_timer(
    raised: type[BaseException], broken: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def on_error(error: BaseException, callback: object) -> None:
        raise broken("from the handler")

    done = threading.Event()
    with SystemTimer("errors", on_error=on_error) as timer:
        (task,) = [timer.call_later(0, raiser, raised)]
        timer.call_later(0.001, done.set)
        wait_for(done)
        assert not task.pending
        assert len(threads_named("errors-timer")) == 1
    logged = [type(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert logged == [broken, raised], "both are told"


def test_t8_on_error_runs_without_any_lock_of_the_timer() -> None:
    done = threading.Event()

    def on_error(error: BaseException, callback: object) -> None:
        other = threading.Thread(target=lambda: (len(timer), timer.call_later(0, done.set)), daemon=True)
        other.start()
        other.join(30)
        assert not other.is_alive()

    with SystemTimer(on_error=on_error) as timer:
        timer.call_later(0, raiser, LookupError)
        wait_for(done)
        wait_until(lambda: len(timer) == 0)
