"""Find the other threads that may wake a loop, and worker threads that have a job."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from fnmatch import fnmatchcase
from types import CodeType
from typing import Any, NamedTuple

from abeyant.aio.virtual.rest import is_asleep, is_at_rest, native_threads, processor_time

_SILENCES = 10  # times `io_grace`, after which a thread that has not run is no longer waited for


class Awake(NamedTuple):
    """The threads that could wake the loop."""

    at_work: list[str]  # descriptions of worker threads that have a job
    others: list[str]  # descriptions of all other threads
    active: bool  # whether to wait for one of the others


class Threads:
    """A watch on the threads that were started after virtual time began, or were idle workers then.

    A thread that was running before, for instance a test runner's or a monitor's, is ignored, or the clock could never
    move. The main thread is always watched: if the loop runs in another thread, the main thread talks to it.

    The clock does not wait for two kinds of threads: threads at rest, which only the loop or another watched thread can
    wake, and threads that have not run for a long time, however often the clock jumped meanwhile.
    """

    def __init__(self, io_grace: float, ignored: Collection[str]) -> None:
        """Start watching. `ignored` has patterns of the names and class names of threads to ignore."""
        self._ignored = tuple(ignored)
        self._enough = _SILENCES * io_grace
        self._silences: dict[int | None, tuple[int | None, float]] = {}  # CPU time, and seconds since it changed
        self._known = {thread for thread in threading.enumerate() if has_job(thread) is not False}
        if threading.current_thread() is not threading.main_thread():
            self._known.discard(threading.main_thread())
        # Threads not started by Python that run already, which are ignored too.
        self._natives = {native_id for native_id in native_threads() if not is_at_rest(native_id)}

    def look(self, waited: float) -> Awake:
        """Return the threads that could wake the loop, `waited` real seconds after the last call. O(threads)."""
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
                # In this order: a woken thread runs first, and looks asleep afterwards.
                asleep, ran = is_asleep(thread.native_id), processor_time(thread.native_id)
                before, silence = self._silences.get(thread.native_id, (None, 0.0))
                silence = silence + waited if asleep and ran is not None and ran == before else 0.0
                silences[thread.native_id] = ran, silence
                active = active or silence < self._enough
        self._silences = silences
        # A running thread looks at rest while it passes the GIL to another; then that one is seen running, unless the
        # two have swapped since. So check again.
        active = active or not all(map(is_at_rest, resting))
        return Awake(at_work, others, active or (bool(resting) and self._is_native_running()))

    def _is_ignored(self, thread: threading.Thread) -> bool:
        names = thread.name, type(thread).__name__
        return any(fnmatchcase(name, pattern) for pattern in self._ignored for name in names)

    def _is_native_running(self) -> bool:
        """Return whether a native thread, not started by Python, is running: a Python thread may wait for it."""
        pythons = {thread.native_id for thread in threading.enumerate()}
        return any(not is_at_rest(native_id) for native_id in native_threads() - pythons - self._natives)


def has_job(thread: threading.Thread) -> bool | None:
    """Return whether a pool's worker has a job or may be about to get one; None for other threads.

    Neither `concurrent.futures` nor anyio has an API for this, but both keep counts.
    """
    futures: Any = sys.modules.get("concurrent.futures.thread")
    if futures is not None and thread in futures._threads_queues:
        return futures._threads_queues[thread].qsize() > 0 or _is_claimed(thread, futures._worker.__code__)
    if type(thread).__module__ == "anyio._backends._asyncio":
        return bool(thread.queue.unfinished_tasks)  # type: ignore[attr-defined]
    return None


def _is_claimed(thread: threading.Thread, waiting: CodeType) -> bool:
    """Return whether a worker of `concurrent.futures` has a job.

    A worker outside of the function in which it waits for jobs has a job. A worker inside it may just have got a job;
    then the submitter has reduced the count of idle workers.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or frame.f_code is not waiting:
        return True
    pool = frame.f_locals["executor_reference"]()
    return pool is not None and pool._idle_semaphore._value < len(pool._threads)
