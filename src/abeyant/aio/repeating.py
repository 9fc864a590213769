"""`call_every` for asyncio's timers and loops, whose callbacks run in a context."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from datetime import timedelta
from typing import Any, Unpack

from abeyant.timer.base import Ts, check_callback
from abeyant.timer.repeating import RepeatingTask

__all__ = ["call_every"]


def call_every(
    self: Any,
    interval: float | timedelta,
    callback: Callable[[Unpack[Ts]], object],
    *args: Unpack[Ts],
    context: Context | None = None,
) -> RepeatingTask:
    """Run `callback(*args)` every `interval` seconds, first one interval from now, until the result is cancelled.

    Run n is at `start + n * interval`, without drift; see `abeyant.Timer.call_every` for late runs. All runs share
    `context`.
    """
    check_callback(callback, "callback")
    return RepeatingTask(self, interval, callback, args, context=context or copy_context())
