"""A process that forks has no threads in its child: what its timers do there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

# Each runs in an interpreter of its own: a fork of the tests' own process would take along whatever they left.
BEGINNING = """
import os, sys, threading, time
from abeyance import SystemTimer

def in_child(function):
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException as error:
            sys.stderr.write(f"in the child: {error!r}")
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

timer = SystemTimer("forking")
"""

PROGRAMS = {
    "a task runs in the child as in the parent": """
timer.call_later(3600, int)

def child():
    done = threading.Event()
    timer.call_later(0.01, done.set)
    assert done.wait(30)
    assert [thread.name for thread in threading.enumerate()].count("forking-timer") == 1
    assert timer.close() == []

in_child(child)
done = threading.Event()
timer.call_later(0.01, done.set)
assert done.wait(30)
""",
    "T3: what was pending runs in the parent, and there alone": """
ran = []
done = threading.Event()
tasks = [timer.call_later(0.2, ran.append, os.getpid()) for _ in range(100)]
timer.call_later(0.3, done.set)

def child():
    assert len(timer) == 0
    assert not any(task.pending or task.cancel() or task.refresh() for task in tasks)
    mine = [timer.call_later(0.1, int) for _ in range(100)]
    assert not any(task.pending or task.cancel() or task.refresh() for task in tasks), "nor the child's own by mistake"
    assert len(timer) == 100 and all(task.pending for task in mine)
    def grandchild():
        assert len(timer) == 0
        again = timer.call_later(60, int)
        assert not any(task.pending or task.cancel() for task in tasks + mine)
        assert again.cancel()
    in_child(grandchild)
    time.sleep(0.5)
    assert ran == []
    assert len(timer) == 0

in_child(child)
assert done.wait(30)
assert ran == [os.getpid()] * 100
""",
    "T4: the child does not keep what the parent's tasks refer to": """
import weakref
class Thing:
    def __call__(self): pass
thing = Thing()
watch = weakref.ref(thing)
timer.call_later(3600, thing)
del thing

def child():
    assert watch() is None

in_child(child)
assert watch() is not None
""",
    "other threads may be amid anything": """
stop = []
def work():
    while not stop:
        timer.call_later(1e-4, int)
        timer.call_later(5, int).cancel()
workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()

def child():
    done = threading.Event()
    timer.call_later(0.001, done.set)
    assert done.wait(30)
    timer.close()

for _ in range(20):
    in_child(child)
stop.append(1)
for worker in workers:
    worker.join()
""",
    "a closed timer stays closed, and one never used can be used": """
closed = SystemTimer("closed")
closed.call_later(1, int)
closed.close()

def child():
    assert closed.closed
    assert closed.close() == []
    done = threading.Event()
    timer.call_later(0, done.set)
    assert done.wait(30)

in_child(child)
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_after_a_fork(program: str) -> None:
    # From 3.12 on Python warns of any fork with threads, which is what is to be tried.
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGINNING + program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
