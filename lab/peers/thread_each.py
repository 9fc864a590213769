"""The standard library's `threading.Timer`, which has a thread per timer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from lab.peers.rival import Rival


class ThreadEachRival(Rival):
    """The rival that measures `threading.Timer`. Every pending timer has a thread, so the sizes are small."""

    largest = 1_000
    holds = False
    forgets = False  # its thread refers to it

    def __init__(self) -> None:
        self.call = self._call

    def _call(self, delay: float, callback: Callable[..., object], *args: Any) -> threading.Timer:
        timer = threading.Timer(delay, callback, args)
        timer.daemon = True
        timer.start()
        return timer

    def wait(self) -> None:
        """Sleep, so that the timers' threads have the interpreter to themselves."""
        time.sleep(0.02)

    def close(self) -> None:
        """Stop the threads."""
        timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        for timer in timers:
            timer.cancel()
        for timer in timers:
            timer.join()
