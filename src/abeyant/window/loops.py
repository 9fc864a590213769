"""Read an event loop for the window: its lag, and its stack while it is blocked."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from typing import Any

BLOCKED = 0.1  # seconds without a turn of the loop after which the stack is shown
_FRAMES = 12  # innermost frames that are shown


class LoopView:
    """Measures the lag of one loop: each `look` schedules a callback and checks how late the last one is."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.loop = loop
        self._asked: float | None = None  # when the callback was scheduled that the loop has not run yet
        self._lag = 0.0

    def look(self) -> dict[str, Any]:
        """Return the loop's lag and blocked time in seconds, and the stack of its thread while it is blocked. O(1)."""
        loop = self.loop
        now = time.monotonic()
        blocked = 0.0 if self._asked is None else now - self._asked
        stack: list[str] = []
        running = loop.is_running()
        if running and self._asked is None:
            self._asked = now
            try:
                loop.call_soon_threadsafe(self._turn, now)
            except RuntimeError:  # it has been closed
                self._asked = None
        elif not running:
            self._asked = None
        if running and blocked >= BLOCKED:
            stack = _stack(getattr(loop, "_thread_id", None))
        return {
            "name": self.name,
            "kind": type(loop).__name__,
            "running": running,
            "lag": round(self._lag, 5),
            "blocked": round(blocked, 3) if blocked >= BLOCKED and running else 0,
            "stack": stack,
        }

    def _turn(self, asked_at: float) -> None:
        self._lag = time.monotonic() - asked_at
        self._asked = None


def _stack(thread: int | None) -> list[str]:
    """Return the innermost frames of a thread, outermost first, a line each."""
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return []
    frames = traceback.extract_stack(frame, limit=None)[-_FRAMES:]
    return [f"{one.name}  {one.filename.rpartition('/')[2]}:{one.lineno}  {one.line or ''}".rstrip() for one in frames]
