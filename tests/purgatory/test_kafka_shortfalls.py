"""Where Apache Kafka's own purgatory falls short, and ours must not (docs/design.md).

Most of these have their tests beside the law that they belong to:

* one raising `tryComplete` reaches an innocent caller and blocks every operation behind it: test_errors.py, P6
* an operation whose second try raises is watched for ever with no timer: test_errors.py, P6
* task exceptions vanish: test_errors.py, P6
* `cancelForKey` leaves the operation on its other keys without a timer: test_cancel_close.py
* pending operations are forgotten at shutdown, later ones accepted but never expire: test_cancel_close.py, P7
* the same key given twice is watched twice: test_keys.py
* a huge delay overflows and runs at once: test_operation.py

The others are here.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext

import pytest

from abeyant.engine import is_compiled
from abeyant.purgatory import Purgatory
from abeyant.timer import ManualTimer, SystemTimer
from purgatory.waits import Wait, in_thread


@pytest.mark.parametrize("where", ["second try", "another key"])
def test_completed_elsewhere_it_is_in_no_list_any_more_p4(
    timer: ManualTimer, purgatory: Purgatory[Wait], where: str
) -> None:
    """Kafka leaves it there until a purge, and brokers have run out of memory for it."""

    def get_ready(wait: Wait) -> None:
        wait.ready = True

    for _ in range(100):
        wait = Wait(on_try=get_ready if where == "second try" else None)
        assert purgatory.try_complete_else_watch(wait, ["a", "b"]) is (where == "second try")
        wait.ready = True
        purgatory.check_and_complete("b")
        assert wait.is_completed
        assert (purgatory.watched, purgatory.watched_keys, purgatory.delayed, len(timer)) == (0, 0, 0, 0)


def test_counting_walks_no_list_and_waits_for_no_lock(purgatory: Purgatory[Wait]) -> None:
    """Kafka walks every list of every key."""
    for _ in range(100):
        purgatory.try_complete_else_watch(Wait(), range(10))
    counts: list[int] = []
    with nullcontext() if is_compiled() else purgatory._directory._lock:  # compiled it is out of reach
        in_thread(lambda: counts.extend((purgatory.watched, purgatory.watched_keys, purgatory.delayed)))
    assert counts == [1000, 10, 100]


def test_cancelling_does_not_wait_for_an_expiry_under_way() -> None:
    """Kafka: cancelling waits while the task's bucket is flushed. Here an expiry even hangs in `on_complete`."""
    with SystemTimer("shortfall") as timer:
        purgatory: Purgatory[Wait] = Purgatory("p", timer)
        expiring, finish = threading.Event(), threading.Event()

        def hang(wait: Wait) -> None:
            expiring.set()
            finish.wait(10)

        slow, cancelled, completed = Wait(0.0, at_completion=hang), Wait(), Wait()
        for wait in (cancelled, completed, slow):
            purgatory.try_complete_else_watch(wait, ["k"])
        assert expiring.wait(10)
        in_thread(lambda: purgatory.cancel(cancelled))
        in_thread(completed.force_complete)
        assert (cancelled.outcome, completed.outcome) == ("cancelled", "completed")
        assert slow.calls == ["try", "try", "complete"]  # still at it
        finish.set()
    assert slow.ends == ["complete", "expire"]


def test_on_the_real_clock_it_expires_never_early_t1() -> None:
    """Kafka fires up to a millisecond early."""
    with SystemTimer("shortfall") as timer, Purgatory[Wait]("p", timer) as purgatory:
        ended = threading.Barrier(2)
        early: list[float] = []
        for timeout in (0.0, 0.0004, 0.001, 0.0123, 0.05):
            late = Wait(timeout, at_expiration=lambda wait: ended.wait(10))
            began = time.monotonic()
            purgatory.try_complete_else_watch(late, ["k"])
            ended.wait(10)
            early.append(began + timeout - time.monotonic())
        assert max(early) <= 0
