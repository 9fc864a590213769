"""Which other threads may wake a loop, and which of them work for somebody."""

from __future__ import annotations

import sys
import threading
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
    """Whether a worker of a pool has a job; None for a thread that is no such worker.

    Neither pool has a call for it. A worker of `concurrent.futures` is between jobs when the function in which it waits
    for one is the innermost that runs; one of anyio's counts its jobs in its queue.
    """
    futures: Any = sys.modules.get("concurrent.futures.thread")
    if futures is not None and thread in futures._threads_queues:
        frame = sys._current_frames().get(thread.ident or 0)
        waits = frame is None or frame.f_code is futures._worker.__code__
        return not waits or futures._threads_queues[thread].qsize() > 0
    if type(thread).__module__ == "anyio._backends._asyncio":
        return bool(thread.queue.unfinished_tasks)  # type: ignore[attr-defined]
    return None
