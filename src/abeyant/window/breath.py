"""How the window's thread lets the program's threads go on while it computes."""

from __future__ import annotations

import asyncio
import time

BUSY = 0.0005  # seconds of processor time after which the thread rests
REST = 0.001  # seconds


class Breath:
    """Counts the processor time of one reading, and rests in between.

    To give up the interpreter's lock is not enough: a thread that takes it again at once is there before those that
    wait for it have woken up. So it sleeps.
    """

    def __init__(self) -> None:
        self._since = time.thread_time()

    async def take(self) -> None:
        """Rest if it is time to. Call it after every piece of work that takes a tenth of a millisecond or more."""
        if time.thread_time() - self._since > BUSY:
            await asyncio.sleep(REST)
            self._since = time.thread_time()
