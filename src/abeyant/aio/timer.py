# cython: nonecheck=True
"""Timers on the wheel in any running asyncio loop, for libraries that do not own the loop.

Ground rules, on top of those of timer/base.py
----------------------------------------------
* One handle of the loop serves all tasks: it wakes the timer when the next bucket expires, at `_wakes_at`. `_wakes_at`
  is `_NEVER` without a handle, and `_AWAKE` during a turn, whose end sets the next handle. The base's `_sleeps_until`
  equals `_wakes_at` while tasks are pending; otherwise it is `_IDLE`, so that any new deadline raises the alarm.
* The loop's clock and its `call_at` may be foreign code, for instance a virtual clock's, so they are called without the
  lock. An earlier deadline sets `_must_rearm` under the lock, and the handle is set again after releasing it.
* The loop keeps the timer alive while tasks are pending, so that tasks run even without other references to the timer.
  It does not keep the timer alive any longer, although the handle may still be set. So the handle refers to a
  `_Keeper`, which refers to the timer strongly or weakly.
* uvloop's clock shows the millisecond in which the loop's current turn began. So delays start from the machine's clock,
  which is ahead of uvloop's; else a task started by a slow callback would be early. Tasks are due by the loop's clock,
  as on every loop.
* Only the loop's thread starts and refreshes tasks, and closes. Any thread may cancel and count tasks, which only
  touches the wheel and the keeper, under the lock.
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
_BATCH = 1024  # tasks in a turn, at most
_SLICE = 5_000_000  # nanoseconds in a turn, at most, before the loop's other work
_PAUSE = 0.001  # seconds: the minimum delay after a loop has woken us early


class _Keeper:
    """The argument of the loop's handle: a reference to the timer, strong while tasks are pending, else weak."""

    __slots__ = ("reference", "timer")

    def __init__(self, timer: Timer) -> None:
        self.timer: Timer | None = None
        self.reference = weakref.ref(timer)


class Timer(_Timer):
    """Timers on the wheel, in any event loop: asyncio's, uvloop's, or ours.

    Tasks run in the loop's thread, in the context in which they were scheduled, like the loop's own callbacks. Errors
    go to the loop's exception handler. The clock is `loop.time()`, which may be virtual. A task never runs before that
    clock shows its deadline, although the timers of some loops do. Many tasks that are due at once run in turns of at
    most 5 ms, with the loop's other work in between.

    Another thread has to start and refresh tasks, and to close the timer, through `loop.call_soon_threadsafe`; the
    loop's debug mode checks this. `cancel`, `pending` and `len` are thread-safe.

    A timer need not be closed: without other references, it is freed with its last task.

    Examples:
        >>> async def main():
        ...     timer = Timer()
        ...     task = timer.call_later(30.0, print, "no answer in 30 s")
        ...     await asyncio.sleep(31.0)
        >>> run_virtual(main())
        no answer in 30 s
    """

    __slots__ = ("_context", "_debug", "_handle", "_keeper", "_lags", "_loop", "_meter", "_must_rearm", "_wakes_at")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        tick: float | timedelta = 0.001,
        wheel_size: int = 64,
        on_error: ErrorHandler | None = None,
    ) -> None:
        """Create a timer in `loop`, by default the running loop (RuntimeError without one). `tick` is in seconds.

        `on_error(error, callback)` gets the errors of callbacks, instead of the loop's exception handler.
        """
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise RuntimeError(
                    "no event loop is running: create the Timer inside a coroutine, or pass loop="
                ) from None
        elif not isinstance(loop, asyncio.AbstractEventLoop):
            raise TypeError(f"loop must be an asyncio event loop, not {loop!r}")
        super().__init__(tick, wheel_size, to_nanoseconds(loop.time(), "loop.time()"), on_error)
        self._loop: asyncio.AbstractEventLoop = loop
        self._lags = _has_uvloops_clock(loop)
        self._context = copy_context()  # for our own handle
        self._debug = loop.get_debug()
        self._must_rearm = False
        self._meter: Meter | None = None
        self._handle: asyncio.Handle | None = None
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

        Like `abeyant.Timer.call_later`, but the callback runs in `context`, by default a copy of the current context.
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
        """Stop, and refuse new tasks. Return the pending tasks, in the order in which they would have run."""
        if self._debug:
            self._check_thread()
        pending = super().close()
        self._release()
        self._disarm()
        return [PendingTask(deadline, *_without_context(callback, args)) for deadline, callback, args in pending]

    def measure(self, every: int = 16) -> None:
        """Measure one callback in `every` from now on: its delay by the loop's clock, and its duration.

        Costs some nanoseconds a callback. See `latencies`. A second call changes `every`, and keeps the counts. Raises
        ValueError unless `every` is from 1 to 1,000,000.
        """
        self._meter = measuring(self._meter, every)

    def latencies(self) -> Latencies | None:
        """Return the latencies measured so far; None before the first `measure`."""
        return None if self._meter is None else self._meter.read()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop in which tasks run."""
        return self._loop

    def __repr__(self) -> str:
        return f"<aio.Timer {'closed' if self._closed else f'{len(self)} pending'}>"

    # -- what every timer does, in a loop ------------------------------------------------------------------

    def _now(self) -> int:
        return monotonic_ns() if self._lags else self._due_by()

    def _reset_in_child(self) -> object:
        inherited = _Timer._reset_in_child(self), self._keeper, self._handle
        self._must_rearm = False
        self._handle = None
        self._keeper = _Keeper(self)
        self._wakes_at = _NEVER
        self._sleeps_until = _IDLE
        return inherited

    def _accepts(self) -> bool:
        return not self._closed and not self._loop.is_closed()

    def _due_by(self) -> int:
        """Return the time on the loop's clock, in nanoseconds. Tasks with a deadline up to this time are due."""
        return to_nanoseconds(self._loop.time(), "loop.time()")

    def _start(self, callback: Callback, args: tuple[Any, ...], delay: int, deadline: int) -> TimerTask:
        if self._debug:
            self._check_thread()
        if self._loop.is_closed():
            raise TimerClosedError(f"the event loop of {self!r} is closed: create a new Timer in the running loop")
        task = _Timer._start(self, callback, args, delay, deadline)
        if self._must_rearm:
            try:
                self._arm_for(deadline)
            except BaseException:
                task.cancel()  # else it would be pending and never run
                raise
        return task

    def _cancel(self, task: TimerTask) -> bool:
        prevented = _Timer._cancel(self, task)
        if prevented:
            enter(self)
            if len(self._wheel) == 0:
                self._release()
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
        if self._must_rearm:
            self._arm_for(deadline)
        return pending

    def _alarm(self) -> bool:
        self._keeper.timer = self
        self._sleeps_until = self._wakes_at
        self._must_rearm = True
        return True

    def _release(self) -> None:
        """Drop the loop's strong reference to this timer. Call it when no task is pending, under the lock or closed."""
        self._keeper.timer = None
        self._sleeps_until = _IDLE

    def _run(self, item: object) -> None:
        callback, args = _unpack(item)
        try:
            result = callback(*args)
            if is_coroutine(result):
                refuse_coroutine(result)
        except (SystemExit, KeyboardInterrupt):  # these end the loop, as in its own callbacks
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
        attempt(partial(self._loop.call_exception_handler, context), error)  # the user's handler, or logging, may raise

    def _set_back(self, loop: asyncio.AbstractEventLoop) -> None:
        """If `loop` is this timer's loop, use its new clock from now on, even if that clock shows an earlier time.

        For virtual time, which sets a clock back only while no timer is pending. So there is no handle to set again.
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
        """Run the tasks that are due, within a turn's budget, and schedule the next wake-up."""
        due_at = self._wakes_at
        self._handle = None
        self._wakes_at = _AWAKE
        self._sleeps_until = _AWAKE
        self._wakeups += 1
        left = _BATCH
        looked = monotonic_ns()
        ends = looked + _SLICE
        now = self._due_by()
        try:
            while left > 0:
                item = None
                enter(self)
                try:
                    if not self._closed:
                        item = self._wheel._poll(now, _BATCH)
                        if len(self._wheel) == 0:
                            self._release()
                finally:
                    leave(self)
                if item is None:
                    break
                measured = self._meter is not None and self._meter._due()
                late = self._due_by() - self._wheel._now() if measured else 0  # the wheel's clock shows the task's tick
                self._run(item)
                item = None  # so that it is not kept alive while polling for the next one
                began, looked = looked, monotonic_ns()
                if measured and self._meter is not None:
                    self._meter._add(late, looked - began)
                left = 0 if looked > ends else left - 1
        finally:
            self._arm(now < due_at)

    def _arm_for(self, deadline: int) -> None:
        """After an alarm, set the loop's handle again, unless it already wakes the timer by `deadline`."""
        self._must_rearm = False
        if deadline < self._wakes_at:
            self._arm(False)

    def _arm_at_earliest(self) -> bool:
        """Set the loop's handle to the earliest deadline; return False if it already is there. For virtual time."""
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
        """Set the loop's handle to the expiration of the next bucket, or to the deadline of `earliest` if given.

        If the loop has just woken us `early`, set it at least `_PAUSE` from now.
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
        when = _seconds_rounded_up(upcoming)
        if early:
            when = max(when, self._loop.time() + _PAUSE)
        try:
            try:
                self._handle = self._loop.call_at(when, _wake, self._keeper, context=self._context)
            except ValueError:  # Pyodide's loop refuses a time that has just passed
                self._handle = self._loop.call_soon(_wake, self._keeper, context=self._context)
        except BaseException:
            self._disarm()
            raise

    def _disarm(self) -> None:
        self._must_rearm = False
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
        """Raise RuntimeError if the loop is running in another thread."""
        if self._loop.is_running() and asyncio._get_running_loop() is not self._loop:
            raise RuntimeError(f"{self!r} was called from outside its event loop: use loop.call_soon_threadsafe")


def _has_uvloops_clock(loop: asyncio.AbstractEventLoop) -> bool:
    uvloop = sys.modules.get("uvloop")
    return uvloop is not None and type(loop).time is uvloop.Loop.time and "time" not in vars(loop)


def _wake(keeper: _Keeper) -> None:
    """Run a turn of the timer. This is the callback of the loop's handle."""
    timer = keeper.reference()
    if timer is not None:
        timer._turn()


def timer_of(handle: Any) -> Timer | None:
    """Return the timer that a loop's handle wakes; None for other handles."""
    if handle._callback is not _wake:
        return None
    keeper: _Keeper = handle._args[0]
    return keeper.reference()


def _without_context(callback: Any, args: tuple[Any, ...]) -> tuple[Callback, tuple[Any, ...]]:
    """Return the user's callback and arguments, without the context that `call_later` added."""
    if isinstance(getattr(callback, "__self__", None), Context):
        return args[0], args[1:]
    return callback, args


def _seconds_rounded_up(deadline: int) -> float:
    """Return nanoseconds as seconds, rounded up so that converting back never gives less.

    Else a virtual clock that stops at exactly that time would wake us too early, again and again.
    """
    seconds = to_seconds(deadline)
    while to_nanoseconds(seconds, "deadline") < deadline:
        seconds = math.nextafter(seconds, math.inf)
    return seconds
