"""Keep the window's thread from starving the program's threads, by short sleeps between steps of its work."""

from __future__ import annotations

import asyncio
import time

BUSY = 0.001  # seconds of processor time after which the thread rests
REST = 0.001  # seconds


class Pacer:
    """Counts the processor time of one reading of the window's data, and sleeps after each `BUSY` s of it.

    Releasing the GIL is not enough: the thread would take the GIL again before the waiting threads have woken up.
    """

    def __init__(self) -> None:
        self._since = time.thread_time()

    async def rest(self) -> None:
        """Sleep `REST` s if the thread has computed for `BUSY` s since its last sleep.

        Call it after each step of work that takes 0.1 ms or more.
        """
        if time.thread_time() - self._since > BUSY:
            await asyncio.sleep(REST)
            self._since = time.thread_time()
