"""uvloop's loop with its timers on the wheel, driven by one uvloop timer that is armed for the next bucket.

uvloop itself counts whole milliseconds from a clock that is rounded down, so it may call a timer up to a millisecond
early, and its clock stands still within a turn. Here `time()` is the machine's monotonic clock, and a callback runs
once that clock has reached its deadline (T1), at most a millisecond later, as libuv wakes by the millisecond.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, Unpack

import uvloop

from abeyant import _interpreted
from abeyant.aio.loop import run_timed
from abeyant.aio.repeating import call_every
from abeyant.aio.schedule import Schedule
from abeyant.engine import WheelStats, is_compiled
from abeyant.timer.base import Ts

_MILLISECONDS = 1000.0  # in a second
_LONGEST = 86400.0  # seconds: a longer alarm is set in several steps


class UvloopEventLoop(uvloop.Loop):
    """`uvloop.Loop` with all its timers on the hierarchical wheel."""

    def __init__(self) -> None:
        """Create the loop. Warn, once per process, if not compiled."""
        if not is_compiled():
            _interpreted.warn_once("abeyant.aio.UvloopEventLoop", stacklevel=2)
        super().__init__()
        self._schedule = Schedule(self, None)
        self._schedule.use_clock(None)  # start at the current time
        self._due: deque[Any] = deque()  # due and not yet called
        self._alarm: asyncio.Handle | None = None  # uvloop's timer, or its `call_soon` if something is already due
        self._alarm_at = math.inf
        self._alarm_context = Context()  # empty, so that the alarm keeps no context variables alive

    def time(self) -> float:
        """Return the time on the machine's monotonic clock, in seconds. Like uvloop, ignore patches of `time`."""
        return self._schedule.now()

    def stats(self) -> WheelStats:
        """Return the counts of the loop's timers; see `EventLoop.stats`."""
        return self._schedule.stats()

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a call after a delay; see `EventLoop.call_later`."""
        if delay is None:
            raise TypeError("delay must not be None")
        return self.call_at(self._schedule.now() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a call at a time; see `EventLoop.call_at`."""
        if when is None:
            raise TypeError("`when` must be a time of the loop's clock, not None")
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        debug = self.get_debug()
        if debug and self.is_running() and asyncio._get_running_loop() is not self:
            raise RuntimeError("Non-thread-safe operation invoked on an event loop other than the current one")
        handle: Any = self._schedule.add(self, when, callback, args, context, debug)
        if when < self._alarm_at:
            self._set_alarm(when)
            # libuv computes its wait from the start of the turn, which is too long by what this callback still takes.
            # A closing handle makes it poll the sockets without waiting, and then read the clock.
            super().call_later(1, _nothing, context=self._alarm_context).cancel()
        return handle  # type: ignore[no-any-return]

    call_every = call_every

    def close(self) -> None:
        """Close the loop. Pending timers are released, and never called."""
        super().close()
        self._schedule.clear()
        self._due.clear()

    def _set_alarm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        now = self._schedule.now()
        when = min(when, now + _LONGEST)
        # In libuv's milliseconds: from the current one to the first that starts at or after `when`.
        delay = math.ceil(when * _MILLISECONDS) - math.floor(now * _MILLISECONDS) if when > now else 0
        self._alarm = super().call_later(delay / _MILLISECONDS, self._turn, context=self._alarm_context)
        self._alarm_at = when

    def _turn(self) -> None:
        """Call the timers that are due, within a turn's budget, and set the alarm for the next deadline."""
        self._alarm = None
        self._schedule.collect(self._due)
        try:
            for _ in range(len(self._due)):
                handle = self._due.popleft()
                if handle._cancelled:
                    continue
                if self.get_debug():
                    run_timed(self, handle)
                else:
                    handle._run()
        finally:
            upcoming = self._schedule.now() if self._due else self._schedule.upcoming()
            if upcoming is None:
                self._alarm_at = math.inf
            else:
                self._set_alarm(upcoming)


def _nothing() -> None:
    pass
