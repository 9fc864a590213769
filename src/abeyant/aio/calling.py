"""Call callbacks in a context, for the interpreted loop (compiled: calling.pxd)."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from contextvars import copy_context as current_context

__all__ = ["call_in", "current_context"]


def call_in(context: Context, callback: Callable[..., object], args: tuple[object, ...]) -> None:
    """Call `callback(*args)` in `context`."""
    context.run(callback, *args)
