# cython: nonecheck=True
"""The base class of all timers: their public methods, the lock over the wheel, and error reporting.

Ground rules
------------
* The lock guards the wheel, `_closed`, `_failed` and the handles' fields. It is held for one wheel operation at a
  time, never while a callback, an error handler, an executor or a dropped item's `__del__` runs: the reference to
  an item that leaves the wheel is dropped after the lock is released.
* Compiled, on an interpreter with a global lock (GIL), the GIL is the lock: the code between `enter` and `leave` is
  C that neither releases the GIL nor makes objects that the garbage collector tracks, so no other thread and no
  finaliser runs in between, and `enter` does nothing. Keep it so: no Python call between `enter` and `leave`. (Where
  the wheel grows, and where it makes an overdue task's entry, a tuple, it pauses the collector.)
* Interpreted, or on a free-threaded interpreter, `enter` acquires `_lock`, a `Mutex`; mutex.py says what happens when a
  finaliser or signal handler calls in the middle of a change. No method that holds the lock calls another method that
  acquires it.
* A driver, such as the thread of a `SystemTimer`, decides when time passes: it polls the wheel between `enter` and
  `leave`, and calls `_run` outside.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVarTuple, Unpack

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.callbacks import is_async, is_coroutine
else:
    from cython.cimports.abeyant.timer.callbacks import is_async, is_coroutine

from abeyant.engine.wheel import TimingWheel
from abeyant.errors import AbeyantError
from abeyant.forking import reset_in_child
from abeyant.mutex import LOCKED, mutex
from abeyant.reporting import report
from abeyant.signature import CLASS_SIGNATURE
from abeyant.timer.repeating import RepeatingTask
from abeyant.timer.task import CANCELLED, TaskOwner, TimerTask
from abeyant.timer.units import NEVER, to_nanoseconds, to_seconds

_LOCKED = LOCKED  # whether `enter` takes a lock: see the ground rules
_NEVER = NEVER  # C constants when compiled
_CANCELLED = CANCELLED
_AWAKE = -1  # for `_sleeps_until`: the driver will poll the wheel before it sleeps, so no deadline has to wake it

Ts = TypeVarTuple("Ts")  # of a callback's arguments
Callback = Callable[..., object]
ErrorHandler = Callable[[BaseException, Callback], object]


class TimerClosedError(AbeyantError, RuntimeError):
    """A task was added to a closed timer, where it could never run."""


class PendingTask(NamedTuple):
    """A task that had not run when the timer was closed."""

    deadline: float
    """The deadline, in seconds on the timer's clock, rounded up to a tick."""
    callback: Callback
    args: tuple[Any, ...]


class TimerStats(NamedTuple):
    """Counts since the timer was made."""

    pending: int
    """Tasks that are pending now: `len(timer)`."""
    started: int
    """Tasks that were added, by any method; refreshes are not counted."""
    expired: int
    """Tasks that reached their deadline: they ran, or were submitted to the executor."""
    cancelled: int
    """Tasks cancelled by `cancel`, or returned by `close`."""
    failed: int
    """Callbacks that raised; they count as `expired`, too."""
    cascaded: int
    """Tasks that the wheel moved to a finer level, nearer to their deadline."""
    levels: int
    """The number of wheels in use."""
    wakeups: int
    """Times that the driver looked for due tasks: once per wake-up, and a `ManualTimer` once per poll of the wheel."""
    failure: str | None = None
    """The reason why the timer's thread ended after an error, so that no task runs any more; None without one."""


class Timer(TaskOwner):
    """The base class of `SystemTimer` and `ManualTimer`, for annotations: runs callbacks at their deadlines.

    It cannot be instantiated. Safe to use from any thread.
    """

    __slots__ = (
        "__weakref__", "_caught", "_closed", "_failed", "_failure", "_lock", "_on_error", "_ready", "_reference",
        "_sleeps_until", "_wakeups", "_wheel",
    )  # fmt: skip
    __signature__ = CLASS_SIGNATURE

    def __init__(
        self,
        tick: float | timedelta = 0.001,
        wheel_size: int = 64,
        start: int = 0,
        on_error: ErrorHandler | None = None,
        caught: type[BaseException] | None = None,
    ) -> None:
        """Not for users. Called by subclasses: `start` is in nanoseconds on the subclass's clock.

        `caught` is the base class of the callbacks' errors that are reported and survived (T8), by default Exception.
        """
        if type(self) is Timer:
            raise TypeError("abeyant.Timer is a base class: create a SystemTimer, a ManualTimer or an aio.Timer")
        if self._is_made():
            raise TypeError(f"{self!r}: its __init__ has been called before")
        tick_ns = to_nanoseconds(tick, "tick")
        if not 1 <= tick_ns < NEVER:
            raise ValueError(f"tick must be at least a nanosecond, and finite, not {tick!r} seconds")
        if on_error is not None:
            check_callback(on_error, "on_error")
        self._wheel = TimingWheel(tick_ns, wheel_size, start)
        self._lock = mutex("a timer")
        self._reference = weakref.ref(self)  # shared by all handles
        self._on_error = on_error
        self._caught: type[BaseException] = Exception if caught is None else caught
        self._closed = False
        self._ready = True
        self._sleeps_until = _AWAKE
        self._failed = 0
        self._failure: str | None = None  # what ended the driver's thread
        self._wakeups = 0
        reset_in_child(self)

    # -- for users -----------------------------------------------------------------------------------------

    def call_later(
        self, delay: float | timedelta, callback: Callable[[Unpack[Ts]], object], *args: Unpack[Ts]
    ) -> TimerTask:
        """Run `callback(*args)` once, `delay` seconds from now: never earlier, at most a tick later. O(1).

        With a delay of zero or less the task runs as soon as the timer gets to it, never inside this call (T5). With an
        infinite delay, or one above 126 years, it never runs, but can be cancelled or refreshed. Raises
        TimerClosedError after `close`, and TypeError for an `async def`, which nobody would await. A callback that
        returns a coroutine all the same is reported as an error.
        """
        return self._start_later(callback, args, to_nanoseconds(delay, "delay"))

    def call_at(self, deadline: float, callback: Callable[[Unpack[Ts]], object], *args: Unpack[Ts]) -> TimerTask:
        """Run `callback(*args)` once, at `deadline` in seconds on this timer's clock (`time`). O(1)."""
        deadline_ns = to_nanoseconds(deadline, "deadline")
        return self._start(callback, args, deadline_ns - self._now(), deadline_ns)

    def call_every(
        self, interval: float | timedelta, callback: Callable[[Unpack[Ts]], object], *args: Unpack[Ts]
    ) -> RepeatingTask:
        """Run `callback(*args)` every `interval` seconds, first one interval from now, until the result is cancelled.

        Run n is due at `start + n * interval` exactly, without drift. Runs do not overlap; runs that are overdue by
        whole intervals are skipped and counted: see `RepeatingTask`. Raises ValueError for an `interval` that is not
        finite, or below a nanosecond.
        """
        check_callback(callback, "callback")
        return RepeatingTask(self, interval, callback, args)

    def time(self) -> float:
        """Return the time on the timer's clock, in seconds."""
        return to_seconds(self._now())

    def next_expiration(self) -> float | None:
        """Return when the timer next has work, in seconds on its clock; None when nothing is pending.

        This may be before any deadline: a task with a distant deadline is first moved to a finer wheel (it cascades).
        """
        enter(self)
        try:
            upcoming = self._wheel.next_expiration()
        finally:
            leave(self)
        return None if upcoming is None else to_seconds(upcoming)

    def stats(self) -> TimerStats:
        """Return counts since the timer was made. O(1)."""
        enter(self)
        try:
            wheel = self._wheel.stats()
            failed = self._failed
            wakeups = self._wakeups
            failure = self._failure
        finally:
            leave(self)
        return TimerStats(
            pending=wheel.pending,
            started=wheel.started,
            expired=wheel.expired,
            cancelled=wheel.cancelled,
            failed=failed,
            cascaded=wheel.cascaded,
            levels=wheel.levels,
            wakeups=wakeups,
            failure=failure,
        )

    def close(self) -> list[PendingTask]:
        """Stop, refuse new tasks, and return the pending tasks in the order in which they would have run.

        A callback that is running is not interrupted. A second call returns an empty list.
        """
        enter(self)
        try:
            self._closed = True
            drained = self._wheel.drain()
        finally:
            leave(self)
        return [PendingTask(to_seconds(deadline), *_unpack(item)) for deadline, item in drained]

    @property
    def closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._closed

    def __len__(self) -> int:
        """Return the exact number of pending tasks (T9)."""
        enter(self)
        try:
            return len(self._wheel)
        finally:
            leave(self)

    def __bool__(self) -> bool:
        # A timer with nothing pending is still a timer: `timer or default` must not replace it.
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: two timers cannot share its tasks")

    # -- for drivers ---------------------------------------------------------------------------------------

    def _now(self) -> int:
        """Return the time on the timer's clock, in nanoseconds."""
        raise NotImplementedError

    def _get_ready(self) -> bool:
        """Prepare the driver, outside the lock. Called when a task is started while `_ready` is not set."""
        raise TypeError(f"{type(self).__name__}: its __init__ must call super().__init__() before it is used")

    def _reset_in_child(self) -> object:
        """Empty the timer in a forked child, where the parent's handles are invalid."""
        inherited = self._wheel
        self._lock = mutex("a timer")
        self._wheel = inherited._successor(inherited._now())
        self._failed = 0
        self._wakeups = 0
        return inherited

    def _accepts(self) -> bool:
        """Return whether a task started now can run."""
        return not self._closed

    def _is_made(self) -> bool:
        """Return whether `__init__` has been called."""
        return self._wheel is not None if cython.compiled else hasattr(self, "_wheel")

    def _alarm(self) -> bool:
        """Wake the driver earlier, for a deadline before `_sleeps_until`. Called under the lock."""
        return True

    def _run(self, item: Any) -> None:
        """Run a task that has left the wheel; report its error, so that other tasks still run (T8)."""
        try:
            if type(item) is not tuple:
                result = item()
            elif len(item) == 2:  # a case of its own only because C makes such a call faster
                result = item[0](item[1])
            else:
                result = item[0](*item[1:])
            if is_coroutine(result):
                refuse_coroutine(result)
        except self._caught as error:
            self._report(error, _unpack(item)[0])

    def _report(self, error: BaseException, callback: Callback) -> None:
        enter(self)
        self._failed += 1
        leave(self)
        report(error, self, callback, "timer", self._on_error, self._caught)

    # -- for TimerTask -------------------------------------------------------------------------------------

    def _start_later(self, callback: Callback, args: tuple[Any, ...], delay: int) -> TimerTask:
        deadline = self._now() + delay
        return self._start(callback, args, delay, _NEVER if deadline > _NEVER else deadline)

    def _start(self, callback: Callback, args: tuple[Any, ...], delay: int, deadline: int) -> TimerTask:
        if not callable(callback) or is_async(callback):
            refuse_callback(callback, "callback")
        # The second case only because C makes a pair faster than it unpacks.
        item: object = callback if not args else (callback, args[0]) if len(args) == 1 else (callback, *args)
        if not self._ready:
            self._get_ready()
        task = TimerTask.__new__(TimerTask)
        task._owner = self._reference
        task._delay = delay
        task._deadline = deadline
        enter(self)
        try:
            closed = self._closed
            if not closed:
                task._handle = self._wheel._add(deadline, item)
                if deadline < self._sleeps_until:
                    self._alarm()
        finally:
            leave(self)
        if closed:
            raise TimerClosedError(f"{self!r} is closed and cannot run {callback!r}; make a new timer")
        return task

    def _cancel(self, task: TimerTask) -> bool:
        enter(self)
        try:
            item = self._wheel._remove(task._handle)
            if item is not None:
                task._handle = _CANCELLED
        finally:
            leave(self)
        return item is not None  # the reference `item` is dropped here, outside the lock

    def _refresh(self, task: TimerTask) -> bool:
        enter(self)
        try:
            self._wheel._foresee(task._handle)
            deadline = self._now() + task._delay  # read under the lock: of concurrent refreshes the later one counts
            if deadline > _NEVER:
                deadline = _NEVER
            pending = self._wheel._refresh(task._handle, deadline)
            if pending:
                task._deadline = deadline
                if deadline < self._sleeps_until:
                    self._alarm()
        finally:
            leave(self)
        return pending

    # -- for purgatories: a task without its TimerTask

    def _start_item(self, item: tuple[Callback, Any], delay: int) -> int:
        """Start a (callback, argument) pair as `_start_later` does; return the handle for `_stop_item`."""
        deadline = self._now() + delay
        if deadline > _NEVER:
            deadline = _NEVER
        handle = 0
        if not self._ready:
            self._get_ready()
        enter(self)
        try:
            if not self._closed:
                handle = self._wheel._add(deadline, item)
                if deadline < self._sleeps_until:
                    self._alarm()
        finally:
            leave(self)
        if handle == 0:  # not a valid handle
            raise TimerClosedError(f"{self!r} is closed and cannot run {item[0]!r}; make a new timer")
        return handle

    def _stop_item(self, handle: int) -> bool:
        """Cancel an item that `_start_item` started, as `_cancel` does."""
        enter(self)
        try:
            item = self._wheel._remove(handle)
        finally:
            leave(self)
        return item is not None

    def _is_pending(self, task: TimerTask) -> bool:
        enter(self)
        try:
            return self._wheel._is_pending(task._handle)
        finally:
            leave(self)


_AT_ANY_RATE: list[Callback] = []


def at_any_rate(callback: Callback) -> Callback:
    """Mark an internal `callback` to run on the timer's thread if the executor does not run it."""
    _AT_ANY_RATE.append(callback)
    return callback


def runs_at_any_rate(callback: Callback) -> bool:
    """Return whether `at_any_rate` marked this callback."""
    return any(callback is one for one in _AT_ANY_RATE)


def check_callback(callback: Any, name: str) -> None:
    """Raise TypeError, naming the argument `name`, if `callback` is not callable or is an `async def`, even wrapped."""
    from inspect import iscoroutinefunction  # imported here: it takes a tenth of the package's import time

    if not callable(callback) or is_async(callback) or iscoroutinefunction(callback):
        refuse_callback(callback, name)


def refuse_callback(callback: Any, name: str) -> None:
    """Raise TypeError for `callback`, the argument `name`, which is not callable or is an `async def`."""
    if not callable(callback):
        raise TypeError(f"{name} must be callable, not {callback!r}")
    raise TypeError(f"{name} must be a plain function, not {callback!r}, which nobody would await: start a task in it")


def refuse_coroutine(result: Any) -> None:
    """Close `result`, the coroutine that a callback returned, and raise TypeError."""
    result.close()  # so that Python does not also warn that it was never awaited
    raise TypeError("the callback returned a coroutine: schedule a plain function that creates a task of it")


def enter(timer: Timer) -> bool:
    """Begin a section that no other thread may interrupt: acquire the lock, unless the GIL is enough."""
    if _LOCKED:
        timer._lock.acquire()
    return True


def leave(timer: Timer) -> bool:
    """End the section that `enter` began."""
    if _LOCKED:
        timer._lock.release()
    return True


def abandon(timer: Timer) -> bool:
    """End the sections in which an exception may have interrupted this thread: release the lock."""
    if _LOCKED and not cython.compiled:
        timer._lock.abandon()
    return True


def _unpack(item: Any) -> tuple[Callback, tuple[Any, ...]]:
    # A callable without arguments is stored as itself, which saves a tuple; a tuple is not callable.
    if type(item) is tuple:
        return item[0], item[1:]
    return item, ()
