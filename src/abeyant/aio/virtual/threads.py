"""Which other threads may wake a loop, and which of them work for somebody."""

from __future__ import annotations

import sys
import threading
from types import CodeType
from typing import Any


class Threads:
    """Threads that were not there when virtual time began, or were but were idle then.

    A thread that was at work already has its own business (a test runner's, a monitor's), and would keep the clock
    from ever moving. The main thread is never taken for such: where a loop runs in another, it is who talks to it.
    """

    def __init__(self) -> None:
        """From now on."""
        self._known = {thread for thread in threading.enumerate() if has_job(thread) is not False}
        if threading.current_thread() is not threading.main_thread():
            self._known.discard(threading.main_thread())

    def look(self) -> tuple[list[str], list[str]]:
        """Descriptions: of workers in a job, of other threads. O(threads)."""
        at_work, others = [], []
        for thread in threading.enumerate():
            if thread not in self._known:
                works = has_job(thread)
                if works:
                    at_work.append(f"a job in the worker thread {thread.name}")
                elif works is None:
                    others.append(f"the thread {thread.name}")
        return at_work, others


def has_job(thread: threading.Thread) -> bool | None:
    """Whether a worker of a pool has a job, or may be about to; None for a thread that is no such worker.

    Neither `concurrent.futures` nor anyio has a call for it. Both count, though: anyio's worker the jobs in its queue.
    """
    futures: Any = sys.modules.get("concurrent.futures.thread")
    if futures is not None and thread in futures._threads_queues:
        return futures._threads_queues[thread].qsize() > 0 or _is_claimed(thread, futures._worker.__code__)
    if type(thread).__module__ == "anyio._backends._asyncio":
        return bool(thread.queue.unfinished_tasks)  # type: ignore[attr-defined]
    return None


def _is_claimed(thread: threading.Thread, waiting: CodeType) -> bool:
    """Whether a worker of `concurrent.futures` is anywhere but in the function in which it waits for jobs.

    Where it is, it may have taken one just now. But whoever submitted that has taken it from the count of idle workers.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or frame.f_code is not waiting:
        return True
    pool = frame.f_locals["executor_reference"]()
    return pool is not None and pool._idle_semaphore._value < len(pool._threads)
