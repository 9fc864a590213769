"""Keep the window's thread from starving the program's threads: it sleeps between pieces of work."""

from __future__ import annotations

import asyncio
import time

BUSY = 0.001  # seconds of processor time after which the thread rests
REST = 0.001  # seconds


class Pacer:
    """Counts the processor time of one reading of the window's data, and sleeps when it has used its share.

    Releasing the GIL is not enough: a thread that takes it again at once is faster than the waiting ones wake up.
    """

    def __init__(self) -> None:
        self._since = time.thread_time()

    async def rest(self) -> None:
        """Sleep `REST` s if `BUSY` s were computed since. Call it after each piece of work of 0.1 ms or more."""
        if time.thread_time() - self._since > BUSY:
            await asyncio.sleep(REST)
            self._since = time.thread_time()
