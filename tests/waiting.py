"""Wait for something that another thread or process does: the one way to do so in tests. No test sleeps blindly."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds: after so long something hangs


def wait_until(
    condition: Callable[[], object], what: str | Callable[[], object] = "it did not happen", seconds: float = PATIENCE
) -> None:
    """Return once the condition holds. Raises AssertionError with `what`, or what it returns, after `seconds`.

    A condition may raise, where what is waited for cannot come any more.
    """
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= give_up:
            raise AssertionError(f"after {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(0.002)
