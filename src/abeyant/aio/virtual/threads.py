"""Which other threads may wake a loop, and which of them work for somebody."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from fnmatch import fnmatchcase
from types import CodeType
from typing import Any, NamedTuple

from abeyant.aio.virtual.rest import is_asleep, is_at_rest, native_threads, processor_time

_SILENCES = 10  # so many times `io_grace` without having run, and a thread is no longer waited for


class Awake(NamedTuple):
    """Threads that may wake the loop."""

    at_work: list[str]  # descriptions of workers in a job
    others: list[str]  # of the other threads, those that need not be waited for included
    active: bool  # whether one of the others has to be waited for


class Threads:
    """Threads that were not there when virtual time began, or were but were idle then.

    A thread that was at work already has its own business (a test runner's, a monitor's), and would keep the clock
    from ever moving. The main thread is never taken for such: where a loop runs in another, it is who talks to it.

    Two kinds are not waited for: those at rest, which nobody can wake but the loop, or a thread that is itself waited
    for; and those that have not run for long, however often the clock jumped meanwhile.
    """

    def __init__(self, io_grace: float, ignored: Collection[str]) -> None:
        """From now on. `ignored` has patterns of the names and classes of threads that do not matter."""
        self._ignored = tuple(ignored)
        self._enough = _SILENCES * io_grace
        self._silences: dict[int | None, tuple[int | None, float]] = {}  # processor time, real seconds waited since
        self._known = {thread for thread in threading.enumerate() if has_job(thread) is not False}
        if threading.current_thread() is not threading.main_thread():
            self._known.discard(threading.main_thread())
        # Of threads that are not Python's: their own business, too.
        self._natives = {native_id for native_id in native_threads() if not is_at_rest(native_id)}

    def look(self, waited: float) -> Awake:
        """Return what runs now, `waited` real seconds after the last look. O(threads)."""
        at_work, others = list[str](), list[str]()
        silences: dict[int | None, tuple[int | None, float]] = {}
        active = False
        resting: list[int | None] = []
        for thread in threading.enumerate():
            if thread in self._known or self._is_ignored(thread):
                continue
            works = has_job(thread)
            if works:
                at_work.append(f"a job in the worker thread {thread.name}")
            elif works is None:
                others.append(f"the thread {thread.name}")
                if is_at_rest(thread.native_id):
                    resting.append(thread.native_id)
                    continue
                # In this order: one that has been woken runs first, and looks asleep afterwards.
                asleep, ran = is_asleep(thread.native_id), processor_time(thread.native_id)
                before, silence = self._silences.get(thread.native_id, (None, 0.0))
                silence = silence + waited if asleep and ran is not None and ran == before else 0.0
                silences[thread.native_id] = ran, silence
                active = active or silence < self._enough
        self._silences = silences
        # One that runs looks at rest while it hands the interpreter's lock to another; that one is seen running then,
        # unless the two have changed places since.
        active = active or not all(map(is_at_rest, resting))
        return Awake(at_work, others, active or (bool(resting) and self._native_runs()))

    def _is_ignored(self, thread: threading.Thread) -> bool:
        names = thread.name, type(thread).__name__
        return any(fnmatchcase(name, pattern) for pattern in self._ignored for name in names)

    def _native_runs(self) -> bool:
        """Return whether a thread that is not Python's runs, for which one of Python's may be waiting."""
        pythons = {thread.native_id for thread in threading.enumerate()}
        return any(not is_at_rest(native_id) for native_id in native_threads() - pythons - self._natives)


def has_job(thread: threading.Thread) -> bool | None:
    """Return whether a worker of a pool has a job, or may be about to; None for a thread that is no such worker.

    Neither `concurrent.futures` nor anyio has a call for it. Both count, though: anyio's worker the jobs in its queue.
    """
    futures: Any = sys.modules.get("concurrent.futures.thread")
    if futures is not None and thread in futures._threads_queues:
        return futures._threads_queues[thread].qsize() > 0 or _is_claimed(thread, futures._worker.__code__)
    if type(thread).__module__ == "anyio._backends._asyncio":
        return bool(thread.queue.unfinished_tasks)  # type: ignore[attr-defined]
    return None


def _is_claimed(thread: threading.Thread, waiting: CodeType) -> bool:
    """Return whether a worker of `concurrent.futures` is anywhere but in the function in which it waits for jobs.

    Where it is, it may have taken one just now. But whoever submitted that has taken it from the count of idle workers.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or frame.f_code is not waiting:
        return True
    pool = frame.f_locals["executor_reference"]()
    return pool is not None and pool._idle_semaphore._value < len(pool._threads)
