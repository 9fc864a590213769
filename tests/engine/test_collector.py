"""A pause of the garbage collector leaves it as it was, whoever else pauses it meanwhile."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from abeyant import ManualTimer
from abeyant.engine.collector import pause_collection, resume_collection


@pytest.fixture(autouse=True)
def on() -> Iterator[None]:
    assert gc.isenabled(), "an earlier test has left it off"
    yield
    gc.enable()


@pytest.mark.parametrize("first_to_end", ["first", "second"])
def test_of_two_pauses_that_overlap_one_is_real(first_to_end: str) -> None:
    first = pause_collection()
    second = pause_collection()
    assert (first, second) == (True, False)
    resume_collection(first if first_to_end == "first" else second)
    assert gc.isenabled() is (first_to_end == "first")
    resume_collection(second if first_to_end == "first" else first)
    assert gc.isenabled()
    again = pause_collection()
    assert not gc.isenabled()
    resume_collection(again)


def test_a_collector_that_the_user_has_switched_off_stays_off() -> None:
    gc.disable()
    resume_collection(pause_collection())
    assert not gc.isenabled()
    gc.enable()
    paused = pause_collection()
    assert not gc.isenabled(), "the one before it has left nothing behind"
    resume_collection(paused)


def test_threads_that_use_timers_of_their_own_leave_the_collector_on() -> None:
    """Each timer has its own lock, if it has one: nothing but the pause itself is shared."""

    def work() -> None:
        timer = ManualTimer()
        for _ in range(20_000):
            resume_collection(pause_collection())
            timer.call_later(1, int).cancel()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert gc.isenabled()
    paused = pause_collection()
    assert paused
    resume_collection(paused)


# Each runs in an interpreter of its own: a fork of the tests' own process would take along whatever they left.
FORKED = """
import gc, os, threading
from abeyant.engine.collector import pause_collection, resume_collection

paused, end = threading.Event(), threading.Event()

def other():
    mine = pause_collection()
    paused.set()
    end.wait()
    resume_collection(mine)

BEFORE
child = os.fork()
if child == 0:
    os._exit(CHILD)
end.set()
assert os.waitpid(child, 0)[1] == 0
AFTER
"""
OTHER_THREAD = "thread = threading.Thread(target=other); thread.start(); paused.wait()"
FORKS = {
    "in the middle of another thread's pause": (
        OTHER_THREAD,
        "not (gc.isenabled() and pause_collection() and not gc.isenabled())",
        "thread.join(); assert gc.isenabled()",
    ),
    "in the middle of another thread's, the collector off": (
        f"gc.disable(); {OTHER_THREAD}",
        "gc.isenabled() or pause_collection()",
        "thread.join(); assert not gc.isenabled()",
    ),
    "in the middle of its own": (
        "mine = pause_collection()",
        "gc.isenabled() or resume_collection(mine) or not gc.isenabled()",
        "assert not gc.isenabled(); resume_collection(mine); assert gc.isenabled()",
    ),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("name", FORKS)
def test_a_fork(name: str) -> None:
    before, child, after = FORKS[name]
    program = FORKED.replace("BEFORE", before).replace("CHILD", child).replace("AFTER", after)
    # From 3.12 on Python warns of any fork with threads, which is what is to be tried.
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
