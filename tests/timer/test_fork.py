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
import asyncio
from abeyant import DelayedOperation, IdleDetector, ManualTimer, Purgatory, SystemTimer, aio

class Wait(DelayedOperation):
    ready = False
    def __init__(self, timeout=0.3, **named):
        super().__init__(timeout, **named)
        self.ends = []
    def try_complete(self):
        return self.ready and self.force_complete()
    def on_complete(self):
        self.ends.append("complete")
    def on_expiration(self):
        self.ends.append("expire")

def until(condition):
    give_up = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.002)

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
    "a virtual clock's tasks are the parent's too": """
manual = ManualTimer(start=5)
ran = []
task = manual.call_later(1, ran.append, 1)

def child():
    assert (len(manual), manual.time()) == (0, 5.0)
    assert not (task.pending or task.cancel())
    manual.call_later(2, ran.append, 2)
    manual.advance(10)
    assert ran == [2]

in_child(child)
assert manual.advance(10) == 1 and ran == [1]
""",
    "a detector watches nobody in the child, and works": """
idle = []
detectors = [IdleDetector(0.2, idle.append, timer), IdleDetector(0.2, idle.append)]
for detector in detectors:
    detector.seen("parent's")

def child():
    for detector in detectors:
        assert len(detector) == 0 and "parent's" not in detector
        assert detector.stats().started == 0
        detector.seen("child's")
        detector._check()
    until(lambda: idle == ["child's"] * 2)
    time.sleep(0.2)
    assert idle == ["child's"] * 2

in_child(child)
until(lambda: idle == ["parent's"] * 2)
""",
    "P1: a purgatory's operations end in the parent, and there alone": """
purgatories = [Purgatory("p", timer), Purgatory("q", ManualTimer())]
waits = []
for purgatory in purgatories:
    waits += [Wait(), Wait(30)]
    for wait in waits[-2:]:
        assert not purgatory.try_complete_else_watch(wait, ["k", "l"])
closed = Purgatory("closed", timer)
closed.close()

def child():
    for wait in waits:
        wait.ready = True
        assert wait.outcome == "cancelled" and not wait.is_completed
        assert not wait.force_complete()
    assert closed.closed
    for purgatory in purgatories:
        assert purgatory.check_and_complete("k") == 0
        assert purgatory.stats() == (0,) * 7
        mine, other = Wait(0.05), Wait(30)
        for wait in (mine, other):
            assert not purgatory.try_complete_else_watch(wait, ["k"])
        purgatory._check()
        other.ready = True
        assert purgatory.check_and_complete("k") == 1
        if purgatory is purgatories[0]:
            until(lambda: mine.ends == ["complete", "expire"])
        else:
            assert len(purgatory.close()) == 1
    time.sleep(0.4)
    assert [wait.ends for wait in waits] == [[]] * 4

in_child(child)
until(lambda: waits[0].ends == ["complete", "expire"])
waits[1].ready = True
assert purgatories[0].check_and_complete("l") == 1
assert len(purgatories[1].close()) == 2
""",
    "P1: an operation's own lock may be held by a thread that the child does not have": """
purgatory = Purgatory("p", timer)
entered, go_on = threading.Event(), threading.Event()

class Slow(Wait):
    def try_complete(self):
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            go_on.wait(30)
        return False

wait = Slow(30)
purgatory.try_complete_else_watch(wait, ["k"])
checker = threading.Thread(target=purgatory.check_and_complete, args=["k"])
checker.start()
assert entered.wait(30)

def child():
    assert not wait.force_complete()
    assert purgatory.check_and_complete("k") == 0

in_child(child)
go_on.set()
checker.join()
assert wait.force_complete()
""",
    "other threads may be amid a submission": """
purgatory = Purgatory("p", timer)
detector = IdleDetector(60, id, timer)
stop = []
def work(number):
    while not stop:
        wait = Wait(5)
        purgatory.try_complete_else_watch(wait, [number, "hot"])
        Wait(5).force_complete()
        detector.seen(wait)
        wait.force_complete()
        detector.forget(wait)
workers = [threading.Thread(target=work, args=[number]) for number in range(2)]
for worker in workers:
    worker.start()

def child():
    mine = Wait(0.01)
    Wait(5).force_complete()
    purgatory.try_complete_else_watch(mine, ["hot", 0, 1])
    detector.seen("mine")
    until(lambda: mine.ends == ["complete", "expire"])
    purgatory._check()
    detector._check()

for _ in range(20):
    in_child(child)
stop.append(1)
for worker in workers:
    worker.join()
""",
    "a try that forks": """
purgatory = Purgatory("p", timer)
class Forks(Wait):
    child = None
    def try_complete(self):
        if self.child is None:
            self.child = os.fork()
        return False
wait = Forks(0.1)
assert not purgatory.try_complete_else_watch(wait, ["k", "l"])
if wait.child == 0:
    ended = wait.outcome == "cancelled" and purgatory.watched == 0 and len(timer) == 0
    purgatory._check()
    os._exit(0 if ended else 1)
assert os.waitpid(wait.child, 0)[1] == 0
until(lambda: wait.ends == ["complete", "expire"])
""",
    "a callback that forks and returns ends the child": """
child = []
forked = threading.Event()
def fork():
    child.append(os.fork())
    forked.set()
timer.call_later(0, fork)
timer.call_later(0.1, int)
assert forked.wait(30)
give_up = time.monotonic() + 30
while (ended := os.waitpid(child[0], os.WNOHANG)) == (0, 0):
    assert time.monotonic() < give_up, "the child hangs"
    time.sleep(0.01)
assert ended[1] == 0
until(lambda: len(timer) == 0)
""",
    "asyncio: what waits in the child waits on the child's own loop": """
purgatory = aio.Purgatory("p")
ran = []

async def wait():
    return await purgatory.wait(["k"], timeout=0.05)

async def parent():
    timer = aio.Timer()
    task = timer.call_later(0.2, ran.append, os.getpid())
    waits = asyncio.ensure_future(purgatory.wait(["k"], timeout=30))
    await asyncio.sleep(0)
    def child():
        assert len(timer) == 0 and not task.cancel()
        assert len(purgatory) == 0 and purgatory.check("k") == 0
        assert not asyncio.run(wait())
        assert ran == []
    in_child(child)
    await asyncio.sleep(0.3)
    assert ran == [os.getpid()]
    assert purgatory.check("k") == 1
    assert await waits

asyncio.run(parent())
""",
    "what repeats goes on in the parent": """
every = timer.call_every(3600, int)
held = ManualTimer().call_every(1, int)  # its timer is gone
every._lock.acquire()  # as another thread may have it

def child():
    assert not threading.Thread(target=every.cancel).start()
    until(lambda: threading.active_count() == 1)
    assert (every.cancel(), every.refresh(), every.cancelled, len(timer)) == (False, False, True, 0)

in_child(child)
every._lock.release()
assert not every.cancelled
assert every.cancel()
""",
    "multiprocessing": """
import multiprocessing
purgatory = Purgatory("p", timer)
detector = IdleDetector(60, id, timer)
detector.seen("parent's")
wait = Wait(30)
purgatory.try_complete_else_watch(wait, ["k"])

def work(results):
    mine = Wait(0.01)
    purgatory.try_complete_else_watch(mine, ["k"])
    until(lambda: mine.ends == ["complete", "expire"])
    results.put((len(detector), wait.force_complete(), purgatory.check_and_complete("k")))

forks = multiprocessing.get_context("fork")
results = forks.SimpleQueue()
workers = [forks.Process(target=work, args=[results]) for _ in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
    assert worker.exitcode == 0
    assert results.get() == (0, False, 0)
assert wait.force_complete()
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
