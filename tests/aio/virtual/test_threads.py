"""Threads beside virtual time: those that only the loop can wake are not waited for, nor those that have not run for
long; what they do for the loop still comes before the clock moves.

Where a test would wait, it would do so for an hour: no grace is shorter.
"""

import asyncio
import logging
import logging.handlers
import os
import queue
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from abeyant import aio
from abeyant.aio.virtual import threads as threads_module
from abeyant.aio.virtual.rest import is_at_rest, processor_time
from aio.virtual.loops import HOUR, RunVirtual, now
from waiting import wait_until

on_linux = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="only Linux says how a thread sleeps")


@pytest.fixture(autouse=True)
def only_threads_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have left in this process, clients of Kafka or of Polars for instance, may run at any time."""
    monkeypatch.setattr(
        threads_module, "native_threads", lambda: {thread.native_id for thread in threading.enumerate()}
    )


def started(target: Callable[[], object], name: str | None = None) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


Waits = dict[str, tuple[Callable[[], object], Callable[[], object]]]  # how a thread waits, and how it is woken


def waits() -> Waits:
    event, lock, simple, full = threading.Event(), threading.Lock(), SimpleQueue[int](), queue.Queue[int]()
    lock.acquire()
    return {
        "event": (event.wait, event.set),
        "lock": (lock.acquire, lock.release),
        "SimpleQueue": (simple.get, lambda: simple.put(1)),
        "Queue": (full.get, lambda: full.put(1)),
    }


@on_linux
@pytest.mark.parametrize("how", waits())
def test_a_thread_that_only_the_loop_can_wake_is_not_waited_for(run_virtual: RunVirtual, how: str) -> None:
    async def main() -> None:
        wait, wake = waits()[how]
        thread = started(wait)
        wait_until(lambda: is_at_rest(thread.native_id))
        for _ in range(100):
            await asyncio.sleep(0.1)
        wake()
        thread.join(60)

    run_virtual(main(), aio.VirtualClock(io_grace=HOUR))


@pytest.mark.parametrize("how", waits())
def test_what_a_thread_does_once_it_is_woken_comes_first(run_virtual: RunVirtual, how: str) -> None:
    async def main() -> None:
        loop, (wait, wake) = asyncio.get_running_loop(), waits()[how]

        def work() -> None:
            wait()
            time.sleep(0.02)
            loop.call_soon_threadsafe(done.set)

        done = asyncio.Event()
        thread = started(work)
        await asyncio.sleep(0)
        wake()
        async with asyncio.timeout(HOUR):
            await done.wait()
        assert now() == 0.0
        thread.join(60)

    run_virtual(main(), aio.VirtualClock(io_grace=5))


@on_linux
def test_a_listener_that_is_given_a_record_a_tick_does_not_hold_the_clock_up(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        log, records, kept = logging.getLogger("a test of virtual time"), queue.Queue[logging.LogRecord](), []
        handler = logging.handlers.QueueHandler(records)

        class Keep(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                kept.append(record)

        log.addHandler(handler)
        listener = logging.handlers.QueueListener(records, Keep())
        listener.start()
        try:
            for number in range(50):
                log.warning("%d", number)
                await asyncio.sleep(0.1)
                assert len(kept) == number + 1, "it has had its turn"
        finally:
            listener.stop()
            log.removeHandler(handler)

    run_virtual(main(), aio.VirtualClock(io_grace=HOUR))


@on_linux
def test_a_thread_that_has_been_woken_is_not_at_rest() -> None:
    """Linux shows the call in which it slept until a processor takes it."""
    items = queue.Queue[bool]()
    thread = started(lambda: all(iter(items.get, False)))
    for _ in range(400):
        while not items.empty():
            pass
        wait_until(lambda: is_at_rest(thread.native_id))
        items.put(True)
        at_rest = is_at_rest(thread.native_id)
        assert items.empty() or not at_rest
    items.put(False)
    thread.join(60)


@pytest.mark.slow  # sleeps
@on_linux
def test_a_thread_that_has_not_run_for_long_is_no_longer_waited_for(run_virtual: RunVirtual) -> None:
    """A monitor in a wait with a time-out: ten graces, whatever the number of jumps. It would take 100 s."""

    async def main() -> float:
        stop = threading.Event()
        thread = started(lambda: stop.wait(600))
        began = time.monotonic()
        for _ in range(1000):
            await asyncio.sleep(0.1)
        stop.set()
        thread.join(60)
        return time.monotonic() - began

    assert 1.0 <= run_virtual(main(), aio.VirtualClock(io_grace=0.1)) < 50


@pytest.mark.slow  # sleeps
@on_linux
def test_a_thread_that_runs_now_and_then_is_waited_for_again(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop, done, ask = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def work() -> None:
            while not ask.wait(600):
                pass
            time.sleep(0.02)
            loop.call_soon_threadsafe(done.set)

        thread = started(work)
        for _ in range(100):
            await asyncio.sleep(0.1)
        before = now()
        ask.set()
        async with asyncio.timeout(HOUR):
            await done.wait()
        assert now() == before
        thread.join(60)

    run_virtual(main(), aio.VirtualClock(io_grace=0.1))


@pytest.mark.parametrize("ignored", ["monitor", "moni*", ("nobody", "Monitor"), ["*"]])
def test_threads_that_are_named_are_not_waited_for(run_virtual: RunVirtual, ignored: str | list[str]) -> None:
    class Monitor(threading.Thread):
        pass

    async def main() -> None:
        stop = threading.Event()
        thread = Monitor(target=lambda: stop.wait(600), name="monitor", daemon=True)
        thread.start()
        await asyncio.sleep(HOUR)
        stop.set()
        thread.join(60)

    run_virtual(main(), aio.VirtualClock(io_grace=HOUR, ignore_threads=ignored))


def test_names_of_threads_are_text() -> None:
    with pytest.raises(TypeError, match="ignore_threads must be names of threads or patterns of them, not 3"):
        aio.virtual_time(ignore_threads=[3])  # type: ignore[list-item]


@on_linux
def test_who_sleeps_with_a_time_out_or_on_a_file_or_runs_is_not_at_rest() -> None:
    stop, (ours, theirs) = threading.Event(), os.pipe()
    threads = [
        started(lambda: stop.wait(600)),
        started(lambda: os.read(ours, 1)),
        started(lambda: [None for _ in iter(stop.is_set, True)]),
    ]
    time.sleep(0.05)
    try:
        for _ in range(100):
            assert not any(is_at_rest(thread.native_id) for thread in threads[:2])
        # It is, for a moment, where it hands over the interpreter's lock.
        assert sum(is_at_rest(threads[2].native_id) for _ in range(100)) < 50
        assert not is_at_rest(None)
        ran = processor_time(threads[2].native_id)
        wait_until(lambda: processor_time(threads[2].native_id) != ran)
        assert processor_time(threads[1].native_id) == processor_time(threads[1].native_id)
    finally:
        stop.set()
        os.write(theirs, b"x")
        for thread in threads:
            thread.join(60)
        os.close(ours)
        os.close(theirs)
    wait_until(lambda: processor_time(threads[0].native_id) is None)
