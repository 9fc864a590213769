"""Two thread-local integers and the thread's id, for nesting.py (compiled: thread_state.pxd)."""

from __future__ import annotations

import threading
from threading import get_ident

__all__ = ["depth", "get_ident", "owed", "set_depth", "set_owed"]


class _Thread(threading.local):
    depth = 0
    owed = 0


_THREAD = _Thread()


def depth() -> int:
    """Return how many operations' locks this thread holds; a lock held twice counts twice."""
    return _THREAD.depth


def set_depth(count: int) -> None:
    """Set the number that `depth` returns."""
    _THREAD.depth = count


def owed() -> int:
    """Return how many actions this thread has deferred."""
    return _THREAD.owed


def set_owed(count: int) -> None:
    """Set the number that `owed` returns."""
    _THREAD.owed = count
