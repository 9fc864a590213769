"""What the window shows of an event loop: its lag, and while it is blocked, where."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from typing import Any

BLOCKED = 0.1  # seconds without a turn, from which on the stack is shown
_FRAMES = 12  # the innermost


class LoopView:
    """Measures the lag of one loop: each `look` schedules a callback and checks how late the last one is."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.loop = loop
        self._asked: float | None = None  # when a turn was asked for that has not come yet
        self._lag = 0.0

    def look(self) -> dict[str, Any]:
        """Return lag in seconds, for how long it is blocked, and its stack then. O(1)."""
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

    def _turn(self, asked: float) -> None:
        self._lag = time.monotonic() - asked
        self._asked = None


def _stack(thread: int | None) -> list[str]:
    """Return the innermost frames of a thread, outermost first, a line each."""
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return []
    frames = traceback.extract_stack(frame, limit=None)[-_FRAMES:]
    return [f"{one.name}  {one.filename.rpartition('/')[2]}:{one.lineno}  {one.line or ''}".rstrip() for one in frames]
