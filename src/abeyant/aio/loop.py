# cython: nonecheck=True
"""asyncio's selector loop with its timers on the wheel.

`call_later` and `call_at`, and with them `asyncio.timeout`, `wait_for` and `sleep`, use a `Schedule` instead of
asyncio's heap; everything else is asyncio's loop of the running Python. So `_run_once` is replaced: it takes the
same steps in the same order, with the wheel in place of the heap.

    1. wait for sockets: not at all if there are ready callbacks, else until the wheel's next bucket expires
    2. append the callbacks of ready sockets to the ready queue, after those of `call_soon`
    3. append the timers that are due, up to the turn's budget (`Schedule.collect`)
    4. run the callbacks that are ready now; callbacks that they add run in the next turn
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
from abeyant.engine import WheelStats, is_compiled
from abeyant.signature import CLASS_SIGNATURE
from abeyant.timer.base import Ts

_base_events: Any = asyncio.base_events
_LONGEST = _base_events.MAXIMUM_SELECT_TIMEOUT
_ASYNCIOS_TIME = asyncio.BaseEventLoop.time


class WheelTimers:
    """A mix-in, the first base of an asyncio loop: keeps timers on a wheel, and replaces the turn that runs them."""

    __slots__ = ("_call_at_overridden", "_own_time", "_schedule")
    __signature__ = CLASS_SIGNATURE

    _schedule: Schedule
    _call_at_overridden: bool
    _own_time: Callable[[], float]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the loop's schedule of timers, and pass all arguments to the loop's own `__init__`."""
        # A subclass may override `time`, or see every timer pass through its `call_at`, as in asyncio.
        self._schedule = Schedule(self, self._class_time)
        self._own_time = attrgetter("own")(self._schedule)  # a Python bound method; Cython would bind the C function
        if type(self).time is WheelTimers.time:  # else `time` may need what the constructor has not set yet
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
        """Call `callback(*args)` `delay` seconds from now, never earlier. O(1).

        `cancel` of the returned handle is O(1) too, and releases the callback and its arguments at once.
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
        """Call `callback(*args)` at `when` on the loop's clock, never earlier. O(1). See `call_later`."""
        if when is None:
            raise TypeError("`when` must be a time of the loop's clock, not None")
        handle: asyncio.TimerHandle = self._call(when, callback, args, context)
        return handle

    call_every = call_every

    def stats(self) -> WheelStats:
        """Return the counts of the loop's timers: started, expired, cancelled, pending. O(1), from any thread.

        The counts restart when the loop's clock goes back.
        """
        return self._schedule.stats()

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
        """Return the loop's clock, a function that returns seconds: `time.monotonic`, as in asyncio, unless replaced.

        If a test replaces it on the instance (`loop.time = clock`), the timers use the new clock too.
        """
        clock: Callable[[], float] | None = self._schedule.clock
        if clock is not None:
            return clock
        if not self._schedule.is_plain() and type(self).time is not WheelTimers.time:
            mixed_in: Any = super()
            asyncios: Callable[[], float] = mixed_in.time  # for `super().time()` in an override
            return asyncios
        return self._own_time

    @time.setter
    def time(self, clock: Callable[[], float]) -> None:
        self._schedule.use_clock(clock)

    @time.deleter
    def time(self) -> None:
        self._schedule.use_clock(None)

    def _class_time(self: Any) -> float:
        """Return the time by the method `time` of the loop's class: a subclass's override, else asyncio's method."""
        cls = type(self)
        if cls.time is WheelTimers.time:
            mixed_in: Any = super()
            self._schedule.trust(getattr(mixed_in.time, "__func__", None) is _ASYNCIOS_TIME)
            now: float = mixed_in.time()
        else:
            now = self.time()
        return now

    def _use_clock(self, clock: Callable[[], float] | None) -> None:
        """Use `clock`, which returns seconds, from now on; None restores the loop's own clock. O(pending timers).

        For virtual time. The new clock may show any time, but must not go back while it is in use.
        """
        self._schedule.use_clock(clock)

    def _earliest(self) -> Any:
        """Return the handle with the earliest deadline; None if no timer is pending.

        For virtual time, whose clock jumps to this deadline when nothing else can run.
        """
        return self._schedule.earliest()

    def close(self) -> None:
        """Close the loop as asyncio does. Release pending timers, which are never called."""
        super().close()  # type: ignore[misc]
        self._schedule.clear()

    @property
    def _scheduled(self: Any) -> list[Any]:
        # The name of asyncio's heap, which some tools read: they get a copy, sorted by deadline. nest_asyncio replaces
        # `_run_once` by a version for a loop with a heap: it gets a heap.
        if getattr(self, "_nest_patched", False):
            heap: list[Any] = self._heap_for_turn()
        else:
            heap = self._schedule.pending()
        return heap

    @_scheduled.setter
    def _scheduled(self, heap: list[Any]) -> None:
        pass  # asyncio's constructor sets its heap, which is not used

    def _heap_for_turn(self: Any) -> list[asyncio.TimerHandle]:
        """Return a heap for nest_asyncio's turn: at most one timer, whose callback collects the wheel's due timers."""
        upcoming = self._schedule.upcoming()
        if upcoming is None:
            return []
        return [asyncio.TimerHandle(upcoming, self._collect_due, (), self)]

    def _collect_due(self: Any) -> None:
        self._schedule.collect(self._ready)

    def _run_once(self: Any) -> None:
        ready = self._ready
        events = self._selector.select(self._select_timeout())
        self._process_events(events)
        events = None  # so that a traceback of this frame keeps neither it nor `handle` alive
        self._schedule.collect(ready)
        for _ in range(len(ready)):
            if not ready:  # a callback ran the loop, which nest_asyncio allows
                break
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self._debug:
                self._current_handle = handle  # the default exception handler shows where it was created
                try:
                    run_timed(self, handle)
                finally:
                    self._current_handle = None
            else:
                handle._run()
        handle = None

    def _select_timeout(self: Any) -> Any:
        """Return how long to wait for sockets, in seconds; None for no limit."""
        if self._ready or self._stopping:
            return 0
        seconds = self._schedule.seconds_to_next()
        return None if seconds is None else min(seconds, _LONGEST)


class EventLoop(WheelTimers, asyncio.SelectorEventLoop):
    """asyncio's selector loop with its timers on the hierarchical wheel.

    A drop-in for `asyncio.SelectorEventLoop`: `aio.run(main())`, `asyncio.Runner(loop_factory=EventLoop)`, or
    `EventLoop(selector)`.
    """

    if TYPE_CHECKING:  # for users it is a method, as in asyncio

        def time(self) -> float: ...  # noqa: D102

    _closed = True  # for the finaliser, if the warning below is an error

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        """Create a loop on `selector`, by default the system's best. Warn, once per process, if not compiled."""
        if not is_compiled():
            _interpreted.warn_once("abeyant.aio.EventLoop", stacklevel=2)
        super().__init__(selector)


def run_timed(loop: Any, handle: Any) -> None:
    """Run a handle's callback in debug mode, and warn if it takes longer than `loop.slow_callback_duration`."""
    began = loop.time()
    handle._run()
    took = loop.time() - began
    if took >= loop.slow_callback_duration:
        _base_events.logger.warning("Executing %s took %.3f seconds", _base_events._format_handle(handle), took)
    handle = None  # so that a traceback of this frame does not keep it alive
