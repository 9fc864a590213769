# cython: nonecheck=True
"""asyncio's selector loop with its timers on the wheel.

`call_later` and `call_at`, and with them `asyncio.timeout`, `wait_for` and `sleep`, go to a `Schedule` in place of
asyncio's heap; everything else is asyncio's own loop, as it is in the Python that runs it. Hence one method of it is
written anew, `_run_once`: the same turn in the same order, with the wheel where the heap was.

    1. wait for sockets: not at all while there is something to call, else until the wheel's next bucket comes up
    2. line up the callbacks of the sockets that are ready, behind those that `call_soon` has lined up
    3. line up the timers that are due, behind those; so many and no more (`Schedule.collect`)
    4. call those that are lined up now; what they add is for the next turn
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextvars import Context
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from abeyant import _interpreted
from abeyant.aio.repeating import call_every
from abeyant.aio.schedule import Schedule
from abeyant.engine import is_compiled
from abeyant.signature import CLASS_SIGNATURE
from abeyant.timer.base import Ts

_base_events: Any = asyncio.base_events
_LONGEST = _base_events.MAXIMUM_SELECT_TIMEOUT
_ASYNCIOS_TIME = asyncio.BaseEventLoop.time


class WheelTimers:
    """For an asyncio loop to inherit from first: its timers on a wheel, and the turn that hands them out."""

    __slots__ = ("_call_at_overridden", "_own_time", "_schedule")
    __signature__ = CLASS_SIGNATURE

    _schedule: Schedule
    _call_at_overridden: bool
    _own_time: Callable[[], float]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take the arguments of the loop's own `__init__`."""
        # A subclass may have a clock of its own, or watch every timer go through its `call_at`, as asyncio's do.
        self._schedule = Schedule(self, self._ask)
        self._own_time = attrgetter("own")(self._schedule)  # bound as Python does: Cython would bind the C function
        if type(self).time is WheelTimers.time:  # else it may need what its constructor has yet to make
            self._schedule.use_clock(None)
        self._call_at_overridden = type(self).call_at is not WheelTimers.call_at
        super().__init__(*args, **kwargs)

    def call_later(
        self: Any,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Arrange for `callback(*args)` to be called `delay` seconds from now, never earlier. O(1).

        `cancel` of the handle that is returned is O(1) too, and lets go of callback and arguments at once.
        """
        if delay is None:
            raise TypeError("delay must not be None")
        when = self._schedule.now() + delay
        if self._call_at_overridden:
            handle: asyncio.TimerHandle = self.call_at(when, callback, *args, context=context)
        else:
            handle = self._call(when, callback, args, context)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Like `call_later`, at a time of the loop's clock, `time()`."""
        if when is None:
            raise TypeError("when cannot be None")
        handle: asyncio.TimerHandle = self._call(when, callback, args, context)
        return handle

    call_every = call_every

    def _call(
        self: Any, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> Any:
        if self._closed:
            self._check_closed()
        debug = self._debug
        if debug:
            self._check_thread()
            self._check_callback(callback, "call_at")
        handle = self._schedule.add(self, when, callback, args, context, debug)
        if type(when) is int:
            handle._whole = True
        return handle

    @property
    def time(self) -> Callable[[], float]:
        """`loop.time()` is the loop's clock in seconds: asyncio's, which is `time.monotonic`, unless it is replaced.

        Replacing it on the instance (`loop.time = clock`), as tests do, is followed by the timers too.
        """
        clock: Callable[[], float] | None = self._schedule.clock
        if clock is not None:
            return clock
        if not self._schedule.is_plain() and type(self).time is not WheelTimers.time:
            mixed_in: Any = super()
            asyncios: Callable[[], float] = mixed_in.time  # for `super().time()` of the override
            return asyncios
        return self._own_time

    @time.setter
    def time(self, clock: Callable[[], float]) -> None:
        self._schedule.use_clock(clock)

    @time.deleter
    def time(self) -> None:
        self._schedule.use_clock(None)

    def _ask(self: Any) -> float:
        """Return the loop's `time()`: its class's own, if there is one, else asyncio's."""
        cls = type(self)
        if cls.time is WheelTimers.time:
            mixed_in: Any = super()
            self._schedule.trust(getattr(mixed_in.time, "__func__", None) is _ASYNCIOS_TIME)
            now: float = mixed_in.time()
        else:
            now = self.time()
        return now

    def _use_clock(self, clock: Callable[[], float] | None) -> None:
        """Run the loop by another clock, in seconds, from here on; None for its own. O(pending).

        For virtual time. The clock must not go back while it is in use; it may differ from the last one in any way.
        """
        self._schedule.use_clock(clock)

    def _earliest(self) -> Any:
        """Return the handle with the earliest deadline; None where nothing is pending.

        For virtual time, which goes there when nothing else can run.
        """
        return self._schedule.earliest()

    def close(self) -> None:
        """Close as asyncio does. Pending timers are released, and never called."""
        super().close()  # type: ignore[misc]
        self._schedule.clear()

    @property
    def _scheduled(self: Any) -> list[Any]:
        # asyncio keeps its heap by this name, and there are tools that look into it: they see a copy, by deadline.
        # nest_asyncio puts a turn of its own in place of `_run_once`, that of a loop with a heap: it gets one to turn.
        if getattr(self, "_nest_patched", False):
            heap: list[Any] = self._heap_to_turn()
        else:
            heap = self._schedule.pending()
        return heap

    @_scheduled.setter
    def _scheduled(self, heap: list[Any]) -> None:
        pass  # asyncio's constructor puts its heap here; there is none

    def _heap_to_turn(self: Any) -> list[asyncio.TimerHandle]:
        """Return a heap of one timer for asyncio's own turn; the timer collects what is due on the wheel."""
        upcoming = self._schedule.upcoming()
        if upcoming is None:
            return []
        return [asyncio.TimerHandle(upcoming, self._line_up_due, (), self)]

    def _line_up_due(self: Any) -> None:
        self._schedule.collect(self._ready)

    def _run_once(self: Any) -> None:
        ready = self._ready
        events = self._selector.select(self._patience())
        self._process_events(events)
        events = None  # not to be kept alive, nor `handle` below, by a traceback that refers to this frame
        self._schedule.collect(ready)
        for _ in range(len(ready)):
            if not ready:  # a callback ran the loop itself, which nest_asyncio allows
                break
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self._debug:
                self._current_handle = handle  # the default exception handler shows where it was made
                try:
                    run_timed(self, handle)
                finally:
                    self._current_handle = None
            else:
                handle._run()
        handle = None

    def _patience(self: Any) -> Any:
        """Return how long to wait for sockets, in seconds; None for ever."""
        if self._ready or self._stopping:
            return 0
        seconds = self._schedule.patience()
        return None if seconds is None else min(seconds, _LONGEST)


class EventLoop(WheelTimers, asyncio.SelectorEventLoop):
    """asyncio's selector loop, its timers on the hierarchical wheel.

    For everything that `asyncio.SelectorEventLoop` is for, and used as it is: `aio.run(main())`,
    `asyncio.Runner(loop_factory=EventLoop)`, `EventLoop(selector)`.
    """

    if TYPE_CHECKING:  # what users call and override is a method, as asyncio's is

        def time(self) -> float: ...  # noqa: D102

    _closed = True  # until it is made: its finaliser asks, also where the warning below is an error

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        """Run on `selector`, by default the machine's best. Warns, once, where it runs interpreted."""
        if not is_compiled():
            _interpreted.warn_once("abeyant.aio.EventLoop", stacklevel=2)
        super().__init__(selector)


def run_timed(loop: Any, handle: Any) -> None:
    """Run a handle's callback in debug mode: warn when it takes longer than `loop.slow_callback_duration`."""
    began = loop.time()
    handle._run()
    took = loop.time() - began
    if took >= loop.slow_callback_duration:
        _base_events.logger.warning("Executing %s took %.3f seconds", _base_events._format_handle(handle), took)
    handle = None  # not to be kept alive by a traceback that refers to this frame
