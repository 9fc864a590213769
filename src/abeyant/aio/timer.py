# cython: nonecheck=True
"""The wheel on a running asyncio loop, any loop: for libraries that do not own it.

Ground rules, on top of those of timer/base.py
----------------------------------------------
* One handle of the loop's stands for all tasks: it wakes the timer when the next bucket comes up. `_wakes_at` says
  when that is: `_NEVER` where there is no handle, `_AWAKE` during a turn, which sets the next by itself. The base's
  `_sleeps_until` is the same while tasks are pending, and `_IDLE` while none are: any deadline gives the alarm then.
* The loop's clock and its `call_at` may be anybody's code (a virtual clock's, say), so both are called with the lock
  free. An earlier deadline is noted under the lock, as `_early`, and the handle set again after it.
* The loop keeps the timer alive while tasks are pending, so that they run even if nobody else refers to it; not
  longer, though its handle may be set still. Hence the handle refers to a `_Keeper`, which refers to the timer
  strongly or weakly.
* uvloop's clock shows the millisecond in which the loop's present round began. Tasks are started by the machine's
  clock instead, which is ahead of it, or what a slow callback starts would be early by as long as that took; and
  they are due by the loop's, as on every loop.
* Only the loop's thread starts, refreshes and closes. Any thread may cancel and count: those touch the wheel and the
  keeper only, under the lock.
"""

from __future__ import annotations

import asyncio
import math
import sys
import weakref
from collections.abc import Callable
from contextvars import Context, copy_context
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.callbacks import is_async, is_coroutine
    from abeyant.timer.clock import monotonic_ns
else:
    from cython.cimports.abeyant.timer.callbacks import is_async, is_coroutine
    from cython.cimports.abeyant.timer.clock import monotonic_ns

from abeyant.aio.repeating import call_every
from abeyant.reporting import attempt, shown
from abeyant.timer.base import (
    Callback,
    ErrorHandler,
    PendingTask,
    TimerClosedError,
    Ts,
    _unpack,
    check_callback,
    enter,
    leave,
    refuse_callback,
    refuse_coroutine,
)
from abeyant.timer.base import Timer as _Timer
from abeyant.timer.meter import Latencies, Meter, measuring
from abeyant.timer.task import TimerTask
from abeyant.timer.units import NEVER, to_nanoseconds, to_seconds

_NEVER = NEVER  # C constants when compiled
_AWAKE = -NEVER
_IDLE = (1 << 63) - 1
_BATCH = 1024  # tasks in a turn, and
_SLICE = 5_000_000  # nanoseconds in a turn, before the loop gets to what else it has to do
_PAUSE = 0.001  # seconds: how long to wait at least for a loop that has woken us early


class _Keeper:
    """The owner of the loop's handle: refers to the timer strongly while tasks are pending, else weakly."""

    __slots__ = ("reference", "timer")

    def __init__(self, timer: Timer) -> None:
        self.timer: Timer | None = None
        self.reference = weakref.ref(timer)


class Timer(_Timer):
    """Timers on the wheel, in any event loop: asyncio's own, uvloop's, or ours.

    Tasks run in the loop, as its own callbacks do: in its thread, in the context in which they were scheduled. Their
    errors go to the loop's exception handler. The clock is the loop's, `loop.time()`, a virtual one included. A task
    never runs before that clock shows its deadline, though some loops' own timers do. Many tasks that are due at once
    run in turns of at most 5 ms, with the loop's other work in between.

    To start, refresh and close from another thread, use `loop.call_soon_threadsafe`; in the loop's debug mode anything
    else is refused. `cancel`, `pending` and `len` are safe from any thread.

    It need not be closed: once dropped, it is freed with its last task.
    """

    __slots__ = ("_context", "_debug", "_early", "_handle", "_keeper", "_lags", "_loop", "_meter", "_wakes_at")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        tick: float | timedelta = 0.001,
        wheel_size: int = 64,
        on_error: ErrorHandler | None = None,
    ) -> None:
        """For `loop`, by default the running one (RuntimeError if none runs). `tick` in seconds.

        `on_error(error, callback)` gets what callbacks raise, instead of the loop's exception handler.
        """
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise RuntimeError("no event loop runs: make the Timer inside a coroutine, or pass loop=") from None
        elif not isinstance(loop, asyncio.AbstractEventLoop):
            raise TypeError(f"loop must be an asyncio event loop, not {loop!r}")
        super().__init__(tick, wheel_size, to_nanoseconds(loop.time(), "loop.time()"), on_error)
        self._loop: asyncio.AbstractEventLoop = loop
        self._lags = _has_uvloops_clock(loop)
        self._context = copy_context()  # of what this package schedules for itself
        self._debug = loop.get_debug()
        self._early = False
        self._meter: Meter | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._keeper = _Keeper(self)
        self._wakes_at = _NEVER
        self._sleeps_until = _IDLE

    # -- for users -----------------------------------------------------------------------------------------

    def call_later(
        self,
        delay: float | timedelta,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> TimerTask:
        """Run `callback(*args)` once, `delay` seconds from now: never earlier, at most a tick later. O(1).

        As `abeyant.Timer.call_later`, and as the loop's own: `context` is what it runs in, by default a copy of the
        present one.
        """
        self._check_callback(callback)
        run = copy_context().run if context is None else context.run
        return self._start_later(run, (callback, *args), to_nanoseconds(delay, "delay"))

    def call_at(
        self,
        deadline: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> TimerTask:
        """Run `callback(*args)` once, at `deadline` in seconds on the loop's clock. O(1)."""
        self._check_callback(callback)
        run = copy_context().run if context is None else context.run
        deadline_ns = to_nanoseconds(deadline, "deadline")
        return self._start(run, (callback, *args), deadline_ns - self._now(), deadline_ns)

    call_every = call_every

    def close(self) -> list[PendingTask]:
        """Stop; return what was still pending, in the order in which it would have run. Refuses tasks after it."""
        if self._debug:
            self._check_thread()
        pending = super().close()
        self._let_go()
        self._disarm()
        return [PendingTask(deadline, *_without_context(callback, args)) for deadline, callback, args in pending]

    def measure(self, every: int = 16) -> None:
        """Measure one callback in `every` from now on: how late it begins by the loop's clock, and how long it takes.

        Costs some nanoseconds a callback. See `latencies`. A second call changes `every`, and keeps the counts. Raises
        ValueError for less than 1.
        """
        self._meter = measuring(self._meter, every)

    def latencies(self) -> Latencies | None:
        """Return what was measured so far; None where `measure` was not called."""
        return None if self._meter is None else self._meter.read()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop in which tasks run."""
        return self._loop

    def __repr__(self) -> str:
        return f"<aio.Timer {'closed' if self._closed else f'{len(self)} pending'}>"

    # -- what every timer does, in a loop ------------------------------------------------------------------

    def _now(self) -> int:
        return monotonic_ns() if self._lags else self._due_by()

    def _begin_anew(self) -> object:
        inherited = _Timer._begin_anew(self), self._keeper, self._handle
        self._early = False
        self._handle = None
        self._keeper = _Keeper(self)
        self._wakes_at = _NEVER
        self._sleeps_until = _IDLE
        return inherited

    def _accepts(self) -> bool:
        return not self._closed and not self._loop.is_closed()

    def _due_by(self) -> int:
        """Return the loop's clock, in nanoseconds."""
        return to_nanoseconds(self._loop.time(), "loop.time()")

    def _start(self, callback: Callback, args: tuple[Any, ...], delay: int, deadline: int) -> TimerTask:
        if self._debug:
            self._check_thread()
        if self._loop.is_closed():
            raise TimerClosedError(f"the event loop of {self!r} is closed: make a Timer in the one that runs")
        task = _Timer._start(self, callback, args, delay, deadline)
        if self._early:
            try:
                self._arm_for(deadline)
            except BaseException:
                task.cancel()  # or it would be accepted and never run
                raise
        return task

    def _cancel(self, task: TimerTask) -> bool:
        prevented = _Timer._cancel(self, task)
        if prevented:
            enter(self)
            if len(self._wheel) == 0:
                self._let_go()
            leave(self)
        return prevented

    def _refresh(self, task: TimerTask) -> bool:
        if self._debug:
            self._check_thread()
        deadline = self._now() + task._delay
        if deadline > _NEVER:
            deadline = _NEVER
        enter(self)
        try:
            pending = self._wheel._refresh(task._handle, deadline)
            if pending:
                task._deadline = deadline
                if deadline < self._sleeps_until:
                    self._alarm()
        finally:
            leave(self)
        if self._early:
            self._arm_for(deadline)
        return pending

    def _alarm(self) -> bool:
        self._keeper.timer = self
        self._sleeps_until = self._wakes_at
        self._early = True
        return True

    def _let_go(self) -> None:
        """Drop the strong reference once nothing is pending. Called under the lock."""
        self._keeper.timer = None
        self._sleeps_until = _IDLE

    def _run(self, item: object) -> None:
        callback, args = _unpack(item)
        try:
            result = callback(*args)
            if is_coroutine(result):
                refuse_coroutine(result)
        except (SystemExit, KeyboardInterrupt):  # these end the loop, as out of its own callbacks
            raise
        except BaseException as error:  # noqa: BLE001  reported
            self._report(error, _without_context(callback, args)[0])

    def _report(self, error: BaseException, callback: Callback) -> None:
        if self._on_error is not None:
            _Timer._report(self, error, callback)
            return
        enter(self)
        self._failed += 1
        leave(self)
        context = {"message": f"Exception in callback {shown(callback)}", "exception": error, "timer": self}
        attempt(partial(self._loop.call_exception_handler, context), error)  # the handler is the user's, or the log's

    def _set_back(self, loop: asyncio.AbstractEventLoop) -> None:
        """Go by the clock that `loop` has now, if it is this timer's: it may be behind the last one. For virtual time.

        The loop has no handle of ours: where timers are pending its clock is not set back. So nothing is to be armed.
        """
        if self._loop is loop:
            now = self._due_by()
            enter(self)
            try:
                if now < self._wheel._now():
                    self._wheel._set_back(now)
            finally:
                leave(self)

    # -- turns ---------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Run what is due, within a turn's budget, and have the loop wake this again for what is left."""
        due_at = self._wakes_at
        self._handle = None
        self._wakes_at = _AWAKE
        self._sleeps_until = _AWAKE
        self._wakeups += 1
        left = _BATCH
        ends = monotonic_ns() + _SLICE
        now = self._due_by()
        try:
            while left > 0:
                item = None
                enter(self)
                try:
                    if not self._closed:
                        item = self._wheel._poll(now, _BATCH)
                        if len(self._wheel) == 0:
                            self._let_go()
                finally:
                    leave(self)
                if item is None:
                    break
                if self._meter is None or not self._meter._due():
                    self._run(item)
                else:
                    self._run_measured(item)
                item = None  # not to be kept alive while the next one is looked for
                left = 0 if monotonic_ns() > ends else left - 1
        finally:
            self._arm(now < due_at)

    def _run_measured(self, item: object) -> None:
        late = self._due_by() - self._wheel._now()  # the wheel's clock shows the tick of what is due
        began = monotonic_ns()
        self._run(item)
        if self._meter is not None:
            self._meter._add(late, monotonic_ns() - began)

    def _arm_for(self, deadline: int) -> None:
        """After an alarm: set the loop's handle again, unless the one that is set comes early enough."""
        self._early = False
        if deadline < self._wakes_at:
            self._arm(False)

    def _arm_at_earliest(self) -> bool:
        """Have the loop wake this at the earliest deadline; return whether it would have before. For virtual time."""
        enter(self)
        try:
            found = self._wheel.earliest()
        finally:
            leave(self)
        if found is not None and found[0] == self._wakes_at:
            return False
        self._arm(False, found)
        return True

    def _arm(self, early: bool, earliest: tuple[int, list[object]] | None = None) -> None:
        """Have the loop wake this when the next bucket comes up; a little later if it has just been `early`.

        Where `earliest` is given, of the wheel, at that deadline.
        """
        self._disarm()
        self._debug = self._loop.get_debug()
        enter(self)
        try:
            upcoming = self._wheel._upcoming() if earliest is None else earliest[0]
            self._wakes_at = _NEVER if upcoming < 0 else upcoming
            if len(self._wheel):
                self._sleeps_until = self._wakes_at
        finally:
            leave(self)
        if upcoming < 0:
            return
        when = _not_before(upcoming)
        if early:
            when = max(when, self._loop.time() + _PAUSE)
        try:
            self._handle = self._loop.call_at(when, _wake, self._keeper, context=self._context)
        except BaseException:
            self._disarm()
            raise

    def _disarm(self) -> None:
        self._early = False
        enter(self)
        self._wakes_at = _NEVER
        self._sleeps_until = _IDLE
        leave(self)
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def _check_callback(self, callback: Callback) -> None:
        if self._debug:
            check_callback(callback, "callback")
        elif not callable(callback) or is_async(callback):
            refuse_callback(callback, "callback")

    def _check_thread(self) -> None:
        """Raise RuntimeError in another thread while the loop runs in its own."""
        if self._loop.is_running() and asyncio._get_running_loop() is not self._loop:
            raise RuntimeError(f"{self!r} was called from outside its event loop: go through loop.call_soon_threadsafe")


def _has_uvloops_clock(loop: asyncio.AbstractEventLoop) -> bool:
    uvloop = sys.modules.get("uvloop")
    return uvloop is not None and type(loop).time is uvloop.Loop.time and "time" not in vars(loop)


def _wake(keeper: _Keeper) -> None:
    """Run the timer's turn. Called by the loop's handle."""
    timer = keeper.reference()
    if timer is not None:
        timer._turn()


def timer_of(handle: Any) -> Timer | None:
    """Return the timer that a handle of a loop wakes; None for any other handle."""
    if handle._callback is not _wake:
        return None
    keeper: _Keeper = handle._args[0]
    return keeper.reference()


def _without_context(callback: Any, args: tuple[Any, ...]) -> tuple[Callback, tuple[Any, ...]]:
    """Return the user's callback and arguments, without the context that `call_later` added."""
    if isinstance(getattr(callback, "__self__", None), Context):
        return args[0], args[1:]
    return callback, args


def _not_before(deadline: int) -> float:
    """Return nanoseconds as seconds, rounded up so that converting back is never too early.

    A virtual clock that stops at just that time would wake us too early for ever.
    """
    seconds = to_seconds(deadline)
    while to_nanoseconds(seconds, "deadline") < deadline:
        seconds = math.nextafter(seconds, math.inf)
    return seconds
