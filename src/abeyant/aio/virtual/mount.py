"""Install a virtual clock on a loop and remove it, by shadowing attributes of the loop instance."""

from __future__ import annotations

import asyncio
import itertools
import math
import selectors
import time
import weakref
from collections.abc import Callable
from typing import Any

from abeyant.aio.timer import Timer
from abeyant.aio.virtual.outside import Outside
from abeyant.aio.virtual.python_clocks import PythonClocks
from abeyant.aio.virtual.selector import VirtualSelector
from abeyant.aio.virtual.timeline import Timeline
from abeyant.forking import everything
from abeyant.idle import IdleDetector

_STEP_BACK = 1.0  # seconds


class Mount:
    """A virtual clock's installation on a loop: replaces its `time`, its selector and some methods until `remove`.

    If the loop has a method `_use_clock`, as abeyant's own loop does, calls that with the new clock too.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Timeline, *, fresh: bool = False) -> None:
        """Install `clock` on `loop`. `fresh`: the loop is new. Raises RuntimeError if clock or loop cannot be used."""
        if clock._loop is not None:
            raise RuntimeError(f"{clock!r} is in use on another loop: create another VirtualClock")
        selector = getattr(loop, "_selector", None)
        if isinstance(selector, VirtualSelector):
            raise RuntimeError(f"this loop is in virtual time already, with {selector.clock!r}: use that clock")
        if not isinstance(selector, selectors.BaseSelector):
            raise RuntimeError(
                f"virtual time needs a loop that waits in a Python selector, and {_name(loop)} has none (uvloop waits "
                "inside libuv): run this test on asyncio.SelectorEventLoop or abeyant's own loop"
            )
        self.loop = loop
        self._clock = clock
        self._own_clock = _clock_of(loop)
        self._pythons = PythonClocks(clock) if clock.clocks else None
        clock._begin(loop, self._start(fresh))
        outside = Outside(loop, clock._io_grace, clock._ignore_threads)
        self._selector = VirtualSelector(loop, selector, clock, outside)
        shadows: dict[str, Any] = {
            "time": clock.time,
            "_selector": self._selector,
            "_clock_resolution": math.ulp(clock.time()),
            **outside.wrappers(),
        }
        if _keeps_heap(loop):
            shadows["call_at"] = _ordered_call_at(loop.call_at)
        self._shadows = tuple(shadows)
        self._shadowed = {name: vars(loop)[name] for name in shadows if name in vars(loop)}
        vars(loop).update(shadows)
        _use_clock(loop, clock.time)
        if loop.get_debug() and not fresh:
            _allow_jump(loop)
        for instance in everything():  # these were created with a clock that may have been ahead of this one
            if isinstance(instance, (Timer, IdleDetector)):
                instance._set_back(loop)
        if self._pythons is not None:
            try:
                self._pythons.begin()
            except BaseException:
                self.remove()
                raise

    def _start(self, fresh: bool) -> float:
        """Return the loop's first virtual time; with pending timers its current time, which keeps their delays."""
        start, now = self._clock._start, self.loop.time()
        pending = sum(not timer.cancelled() for timer in getattr(self.loop, "_scheduled", ()))
        if start is None:
            return now if pending else 0.0 if fresh else float(math.ceil(now))
        if pending:
            raise ValueError(
                f"start={start} would move the {pending} timers that are pending on this loop at {now:.6f} s: "
                "leave start out here"
            )
        return start

    def remove(self) -> None:
        """Restore the loop's attributes. The loop's time continues from the virtual time, without a jump (T7)."""
        if self._pythons is not None:
            self._pythons.end()
        self._selector._real_clocks.end()
        self._clock._end()
        if self.loop.is_closed():
            return
        for name in self._shadows:
            del vars(self.loop)[name]
        vars(self.loop).update(self._shadowed)
        clock = _offset_clock(self._clock.time(), self._own_clock)
        vars(self.loop)["time"] = clock
        _use_clock(self.loop, clock)


def _allow_jump(loop: Any) -> None:
    """Keep debug mode from reporting the current callback as slow because the clock jumps while it runs."""
    duration = loop.slow_callback_duration
    loop.slow_callback_duration = math.inf

    def restore() -> None:
        if loop.slow_callback_duration == math.inf:  # nobody has set it since
            loop.slow_callback_duration = duration

    loop.call_soon(restore)


def _offset_clock(begin: float, clock: Callable[[], float]) -> Callable[[], float]:
    """Return `clock` with an offset, so that it shows `begin` now.

    A test may have frozen or moved `clock` at this moment, and release it later. If `clock` then goes back, adjust the
    offset; else the loop would stand still until `clock` has caught up. Small steps back are ignored: they come from
    rounding, or from reads in another thread.
    """
    latest = clock()
    offset = begin - latest
    reading = begin

    def offset_clock() -> float:
        nonlocal latest, offset, reading
        now = clock()
        if now < latest - _STEP_BACK:
            offset = reading - now
        latest = now
        reading = max(reading, now + offset)
        return reading

    return offset_clock


def _clock_of(loop: Any) -> Callable[[], float]:
    """Return a function that returns the time by the loop's own clock, without keeping the loop alive."""
    own_clock = getattr(loop, "_own_time", None)
    if own_clock is not None:
        return own_clock  # type: ignore[no-any-return]
    reference = weakref.ref(loop)

    def class_clock() -> float:
        referent = reference()
        return time.monotonic() if referent is None else float(type(referent).time(referent))

    return class_clock


def _name(loop: asyncio.AbstractEventLoop) -> str:
    return f"{type(loop).__module__}.{type(loop).__qualname__}"


def _use_clock(loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
    use_clock = getattr(loop, "_use_clock", None)
    if use_clock is not None:
        use_clock(clock)


def _keeps_heap(loop: asyncio.AbstractEventLoop) -> bool:
    return hasattr(loop, "_scheduled") and not hasattr(loop, "_use_clock")


class _Deadline(float):
    """A deadline in seconds. Equal deadlines sort by the order of their creation.

    asyncio's heap does not define the order of equal deadlines. In real time they hardly occur; in virtual time ten
    workers that sleep for a second wake at the same instant, and should do so in the order in which they went to sleep.
    """

    __slots__ = ("order",)
    order: int

    def __lt__(self, other: float) -> bool:
        return float.__lt__(self, other) or (self == other and self.order < getattr(other, "order", self.order))


def _ordered_call_at(call_at: Callable[..., asyncio.TimerHandle]) -> Callable[..., asyncio.TimerHandle]:
    order = itertools.count()

    def ordered(when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.TimerHandle:
        deadline = _Deadline(when)
        deadline.order = next(order)
        return call_at(deadline, callback, *args, context=context)

    return ordered
