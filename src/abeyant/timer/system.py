# cython: nonecheck=True
"""A timer with a thread of its own, on the machine's monotonic clock.

Ground rules
------------
* `_ready` says that the thread has been started, so that a start need not ask for more than that.
* `_sleeps_until` says until when the thread sleeps, and `_woken` whether it has been woken since. Both are
  written under the timer's lock. `_wake` is the thread's alarm: a lock that the thread takes to sleep, with a
  time-out, and that the first to see an earlier deadline releases; once a sleep, for `_woken` is set with it.
* The thread refers to the timer while tasks are pending, so that they run even if nobody else does, and weakly
  while none are: an idle timer that is dropped is freed, and its thread ends, as in `ThreadPoolExecutor`. Whoever
  wakes the thread hands it the timer through `_handed`, for by the time it looks the timer might be gone.
* A process that forks leaves its threads behind. In the child every timer begins anew, and empty: its tasks are the
  parent's, and run there, once (T3). Nothing of the parent's is relied on, for another thread may have been amid it.
"""

from __future__ import annotations

import _thread
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from sys import is_finalizing, modules
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from concurrent.futures import Executor  # which would be slow to import

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.clock import monotonic_ns
else:
    from cython.cimports.abeyant.timer.clock import monotonic_ns

from abeyant.reporting import report
from abeyant.timer.base import ErrorHandler, PendingTask, Timer, Ts, _unpack, abandon, enter, leave, runs_at_any_rate
from abeyant.timer.meter import Latencies, Meter, measuring
from abeyant.timer.task import TimerTask
from abeyant.timer.units import NEVER, to_nanoseconds

_AWAKE = -1  # as in base.py
_ENDED = -1  # from `_turn`: the timer is closed
_FOREVER = NEVER
_LONGEST = threading.TIMEOUT_MAX
_CASCADES = 1024  # at most so many tasks are filed anew before the thread lets others have the lock
_RUNS = 64  # callbacks between two looks at the clock while a storm lasts
_SHARE = 5_000_000  # nanoseconds that a storm has the interpreter for itself: as long as Python's threads have it
# Whether there may be daemons here, and what calls a function before the other threads are waited for: what
# concurrent.futures uses, for `atexit` would come too late.
_daemons_are_allowed: Callable[[], bool] = getattr(_thread, "daemon_threads_allowed", lambda: True)  # from 3.12 on
_at_end: Callable[[Callable[[], None]], None] = getattr(threading, "_register_atexit", lambda _: None)


class SystemTimer(Timer):
    """A timer with a thread of its own, which sleeps until the next bucket comes up.

    Callbacks run on that thread, one after another, so a slow one delays the rest. Pass an `executor` to run them
    elsewhere. A task then counts as run when it has been submitted: to cancel it after that returns False. One that the
    executor refuses, or drops later (`shutdown(cancel_futures=True)`), is reported and not run; an operation's end or
    an `IdleDetector`'s turn then runs on the thread.

    The thread starts with the first task and is a daemon: it does not keep the interpreter alive. It wakes when a
    bucket comes up, and earlier only when a task with an earlier deadline appears (T10). A task that is cancelled while
    the thread sleeps towards its bucket costs one wake-up; to avoid it would cost every cancel a look at the queue.

    After a fork the child's timer is empty and works; handles from before mean nothing there. What was pending runs in
    the parent.

    Source of the idea: Kafka's `SystemTimer`, whose reaper waits on a delay queue of buckets.

    Examples:
        >>> timer = SystemTimer("rpc")
        >>> task = timer.call_later(30.0, print, "no answer in 30 s")
        >>> task.cancel()  # the answer came
        True
        >>> timer.close()  # returns what was still pending
        []
    """

    __slots__ = (
        "_begins", "_dropped", "_executor", "_handed", "_meter", "_name", "_starting", "_thread", "_wake", "_woken",
    )  # fmt: skip

    def __init__(
        self,
        name: str = "abeyant",
        *,
        tick: float | timedelta = 0.001,
        wheel_size: int = 64,
        executor: Executor | None = None,
        on_error: ErrorHandler | None = None,
    ) -> None:
        """`tick` in seconds; `name` is the thread's; `on_error(error, callback)` gets what callbacks raise."""
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, the name of the timer's thread, not {name!r}")
        if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
            raise TypeError(f"executor must be a concurrent.futures.Executor, not {executor!r}")
        processes: Any = modules.get("concurrent.futures.process")
        if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
            raise TypeError(
                f"executor must run callbacks in this process, as a ThreadPoolExecutor does, not {executor!r}"
            )
        # BaseException: neither SystemExit nor the like may end the thread.
        super().__init__(tick, wheel_size, monotonic_ns(), on_error, BaseException)
        self._name = name
        self._executor = executor
        self._meter: Meter | None = None
        self._be_without_thread()

    def _be_without_thread(self) -> None:
        self._sleeps_until = _AWAKE
        self._woken = False
        self._handed: list[SystemTimer] = []
        self._dropped: list[tuple[BaseException, object]] = []  # what the executor has not run, and why
        self._wake = threading.Lock()
        self._wake.acquire()
        self._starting = threading.RLock()
        self._begins = False
        self._thread: threading.Thread | None = None
        self._ready = False

    def _begin_anew(self) -> object:
        inherited = Timer._begin_anew(self)
        self._be_without_thread()
        return inherited

    @property
    def name(self) -> str:
        """The timer's name; its thread is `<name>-timer`."""
        return self._name

    def call_later(
        self, delay: float | timedelta, callback: Callable[[Unpack[Ts]], object], *args: Unpack[Ts]
    ) -> TimerTask:
        """Run `callback(*args)` once, `delay` seconds from now; see `Timer.call_later`. O(1)."""
        # Here again because the interpreter calls a method of the object's own class faster.
        return self._start_later(callback, args, to_nanoseconds(delay, "delay"))

    def measure(self, every: int = 16) -> None:
        """Measure one callback in `every` from now on: how late it begins, and how long it takes. See `latencies`.

        Costs some nanoseconds a callback. A second call changes `every`, and keeps the counts. Raises ValueError for
        less than 1, and TypeError with an executor, which runs callbacks elsewhere.
        """
        if self._executor is not None:
            raise TypeError(f"{self!r} runs callbacks in its executor, where it cannot measure them")
        self._meter = measuring(self._meter, every)

    def latencies(self) -> Latencies | None:
        """Return what was measured so far; None where `measure` was not called."""
        return None if self._meter is None else self._meter.read()

    def _now(self) -> int:
        return monotonic_ns()

    def close(self) -> list[PendingTask]:
        """Close as `Timer.close` does; return once a callback that runs on the timer's thread has ended.

        Callbacks that an `executor` is running go on: shut the executor down to wait for them.

        Called in a callback of any timer, it returns at once: two callbacks that close each other's timers would
        deadlock. It also returns at once while the interpreter shuts down.
        """
        pending = super().close()
        enter(self)
        try:
            self._alarm()
        finally:
            leave(self)
        thread = self._thread
        # While the interpreter shuts down, a daemon's thread runs no more, and would be waited for for ever.
        if thread is not None and not is_finalizing() and not isinstance(threading.current_thread(), _Driver):
            thread.join()
        return pending

    def _get_ready(self) -> bool:
        self._start_thread()
        return True

    def _start_thread(self) -> None:
        if not self._is_made():
            Timer._get_ready(self)  # which raises
        # If it raises, the caller sees it, and has not added a task that would never run. Reentrant, and `_begins`
        # there, because the garbage collector may run a `__del__` in the middle of it that starts a task as well.
        with self._starting:
            if self._thread is None and not self._closed and not self._begins:
                self._begins = True
                alarm = self._wake
                handed = self._handed
                try:
                    reference = weakref.ref(self, partial(_release, alarm))
                    handed.append(self)
                    thread = start_driver(_drive, (reference, handed, alarm), f"{self._name}-timer", reference)
                    self._thread = thread
                    self._ready = True
                except BaseException:
                    handed.clear()
                    raise
                finally:
                    self._begins = False

    def _alarm(self) -> bool:
        # The thread need not wake for a bucket that comes up earlier but holds only later deadlines.
        if not self._woken:
            self._woken = True
            self._sleeps_until = _AWAKE
            self._handed.append(self)
            self._wake.release()
        return True

    def _turn(self) -> int:
        """Run what is due; return how long to sleep then, in nanoseconds, NEVER until woken, _ENDED for good."""
        enter(self)
        try:
            self._sleeps_until = _AWAKE
            self._wakeups += 1
            if self._woken:
                self._woken = False
                self._wake.acquire(False)  # in case the sleep timed out just before it was woken
        finally:
            leave(self)
        if self._dropped:
            self._take_all_back()
        alarm = self._wake
        now = monotonic_ns()
        began = now
        runs = 0
        ended = 0  # when the last callback did, if it was measured and the next one follows at once
        while True:
            enter(self)
            try:
                if self._closed or self._wake is not alarm:  # or a callback forked, and this is the child
                    return _ENDED
                item = self._wheel._poll(now, _CASCADES)
                if item is None:
                    upcoming = self._wheel._upcoming()
                    if upcoming < 0:
                        self._sleeps_until = _FOREVER
                        return _FOREVER
                    if upcoming > now:  # all that was due at the last look at the clock has run, so look again
                        now = monotonic_ns()
                        if upcoming > now:
                            self._sleeps_until = upcoming
                            return upcoming - now
                    ended = 0
                    continue
            finally:
                leave(self)
            if self._executor is not None:
                self._submit(self._executor, item)
            elif self._meter is None or not self._meter._due():
                self._run(item)
                ended = 0
            else:
                starts = monotonic_ns() if ended == 0 else ended
                late = starts - self._wheel._now()  # while something is due, the wheel's clock shows that tick
                self._run(item)
                item = None  # what is dropped with it belongs to its callback
                ended = monotonic_ns()
                if self._meter is not None:
                    self._meter._add(late, ended - starts)
            item = None  # not to be kept alive while the next one is looked for
            runs += 1
            if runs == _RUNS:
                runs = 0
                if monotonic_ns() - began > _SHARE:
                    time.sleep(0)  # callbacks in C never let other threads have the interpreter
                    began = monotonic_ns()
                    ended = 0

    def _submit(self, executor: Executor, item: object) -> None:
        try:
            job: Any = executor.submit(self._execute, item)
        except self._caught as error:  # an executor that was shut down, or is full
            self._take_back(error, item)
            return
        watch = getattr(job, "add_done_callback", None)
        if watch is not None:
            watch(partial(self._look_back, item))

    def _look_back(self, item: object, job: Any) -> None:
        """Check a finished job, on the thread that ended it: if it has not run, pass it to the timer's thread.

        Not here: an executor that drops its jobs may hold its own lock meanwhile.
        """
        try:
            ended: tuple[Any, object] = job.exception(), item
        except self._caught as raised:  # it was cancelled
            ended = raised, item
        if ended[0] is None:
            return
        enter(self)
        try:
            if not self._closed:
                self._dropped.append(ended)
                self._alarm()
        finally:
            leave(self)
            del ended  # a frame must not hold the exception that holds the frame

    def _take_all_back(self) -> None:
        # Not in `_turn`, whose frame an error of the next jobs may hold: it would hold the list that they come into.
        emptied: list[tuple[BaseException, object]] = []  # made outside the lock, for a collection may begin with it
        enter(self)
        try:
            dropped, self._dropped = self._dropped, emptied
        finally:
            leave(self)
        for error, item in dropped:
            self._take_back(error, item)

    def _take_back(self, error: BaseException, item: object) -> None:
        callback = _unpack(item)[0]
        self._report(error, callback)
        if runs_at_any_rate(callback):
            self._run(item)

    def _execute(self, item: object) -> None:
        self._run(item)

    def _break_down(self, error: BaseException) -> None:
        """Close after an error outside callbacks (out of memory, say): refuse new tasks, and report it.

        What is pending stays, for `close` to hand back.
        """
        abandon(self)
        enter(self)
        try:
            self._closed = True
            self._failure = f"its thread was ended by {type(error).__name__}"
        finally:
            leave(self)
        report(error, self, self._turn, "timer", self._on_error, self._caught)

    def __repr__(self) -> str:
        if self._failure is not None:
            return f"<SystemTimer {self._name!r}, {self._failure}, {len(self)} pending>"
        return f"<SystemTimer {self._name!r}, {'closed' if self._closed else f'{len(self)} pending'}>"


class _Driver(threading.Thread):
    """The thread of a timer."""


def start_driver(target: Any, args: tuple[Any, ...], name: str, timer: Any) -> _Driver:
    """Start the thread; `timer` is a weak reference. RuntimeError where Python has no threads.

    It is a daemon, but for subinterpreters that allow none: there the timer is closed as the interpreter ends.
    """
    daemon = _daemons_are_allowed()
    if not daemon:
        _at_end(partial(_close, timer))
    driver = _Driver(target=target, args=args, name=name, daemon=daemon)
    try:
        driver.start()
    except RuntimeError as error:
        raise RuntimeError(
            f"a SystemTimer needs a thread of its own: {error}; where Python has no threads, use abeyant.aio.Timer "
            "on a running event loop, or a ManualTimer"
        ) from error
    return driver


def _close(reference: Any) -> None:
    timer = reference()
    if timer is not None:
        timer.close()


def _drive(reference: Any, handed: list[SystemTimer], alarm: Any) -> None:
    """Run the thread's loop: run what is due, sleep, repeat, until the timer is closed or collected."""
    timer = None
    try:
        while True:
            timer = reference()
            handed.clear()
            if timer is None:
                return
            delay = timer._turn()
            if delay == _ENDED:
                return
            if delay >= _FOREVER:
                timer = None
                alarm.acquire()
            else:
                alarm.acquire(True, min(delay / 1e9, _LONGEST))
    except BaseException as error:  # noqa: BLE001  reported
        timer = timer or reference()
        if timer is not None:
            timer._break_down(error)
    finally:
        handed.clear()


def _release(alarm: Any, _: object) -> None:
    try:  # noqa: SIM105  at the interpreter's end `suppress` may be gone before the timer
        alarm.release()
    except RuntimeError:  # released already: the thread is awake
        pass
