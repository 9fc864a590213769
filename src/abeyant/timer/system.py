# cython: nonecheck=True
"""A timer with a thread of its own, on the machine's monotonic clock.

Ground rules
------------
* `_ready` is set once the thread has been started: starting a task checks nothing else.
* `_sleeps_until` says until when the thread sleeps, and `_woken` whether it has been woken since. Both are
  written under the timer's lock. `_wake` is the thread's alarm: a lock that the thread acquires to sleep, with a
  time-out. The first caller with an earlier deadline releases it, and sets `_woken`, so that no other caller does.
* The thread refers to the timer strongly while tasks are pending, so that they run even if nothing else refers to the
  timer, and weakly otherwise: an idle timer that is dropped is freed, and its thread ends, as in `ThreadPoolExecutor`.
  A caller that wakes the thread appends the timer to `_handed`, so that it is not freed before the thread runs.
* A forked child has none of its parent's threads. In the child every timer starts anew, and empty: tasks from before
  the fork run in the parent, once (T3). The child does not rely on the parent's state, which another thread may have
  been changing.
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
_CASCADES = 1024  # maximum number of tasks to cascade before the thread releases the lock
_RUNS = 64  # callbacks between two readings of the clock while many tasks are due
_SHARE = 5_000_000  # nanoseconds of callbacks before other threads may run: Python's default switch interval
# Whether this interpreter allows daemon threads, and a way to call a function before the interpreter joins its other
# threads: concurrent.futures uses it too, as `atexit` would come too late.
_daemons_are_allowed: Callable[[], bool] = getattr(_thread, "daemon_threads_allowed", lambda: True)  # from 3.12 on
_at_end: Callable[[Callable[[], None]], None] = getattr(threading, "_register_atexit", lambda _: None)


class SystemTimer(Timer):
    """A timer with a thread of its own, which sleeps until the next bucket is due.

    Callbacks run on that thread, one after another, so a slow callback delays the rest. Pass an `executor` to run them
    elsewhere. A task then counts as run once it is submitted, and `cancel` returns False. A task that the executor
    refuses, or drops later (`shutdown(cancel_futures=True)`), is reported and does not run; but the expiration of an
    operation and the turn of an `IdleDetector` then run on the timer's thread.

    The thread starts with the first task and is a daemon: it does not keep the interpreter alive. It wakes when a
    bucket is due, and earlier only when a task with an earlier deadline is started (T10). A task cancelled while
    the thread sleeps towards its bucket costs one wake-up; to avoid this, every cancel would have to check the queue.

    After a fork the child's timer is empty and works; handles from before the fork are invalid in the child. Pending
    tasks run in the parent.

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
        """Create a timer. `tick` is in seconds; `on_error(error, callback)` gets errors, else they are logged."""
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
        self._dropped: list[tuple[BaseException, object]] = []  # errors and items of tasks that the executor dropped
        self._wake = threading.Lock()
        self._wake.acquire()
        self._starting = threading.RLock()
        self._begins = False
        self._thread: threading.Thread | None = None
        self._ready = False

    def _reset_in_child(self) -> object:
        inherited = Timer._reset_in_child(self)
        self._be_without_thread()
        return inherited

    @property
    def name(self) -> str:
        """Return the timer's name; its thread is `<name>-timer`."""
        return self._name

    def call_later(
        self, delay: float | timedelta, callback: Callable[[Unpack[Ts]], object], *args: Unpack[Ts]
    ) -> TimerTask:
        """Run `callback(*args)` once, `delay` seconds from now; see `Timer.call_later`. O(1)."""
        # Here again because the interpreter calls a method of the object's own class faster.
        return self._start_later(callback, args, to_nanoseconds(delay, "delay"))

    def measure(self, every: int = 16) -> None:
        """Measure one callback in `every` from now on: how late it begins, and how long it takes. See `latencies`.

        Costs some nanoseconds a callback. A second call changes `every`, and keeps the counts. Raises ValueError
        unless `every` is from 1 to 1,000,000, and TypeError with an executor, which runs callbacks elsewhere.
        """
        if self._executor is not None:
            raise TypeError(f"{self!r} runs callbacks in its executor, where it cannot measure them")
        self._meter = measuring(self._meter, every)

    def latencies(self) -> Latencies | None:
        """Return the measurements so far; None if `measure` was not called."""
        return None if self._meter is None else self._meter.read()

    def _now(self) -> int:
        return monotonic_ns()

    def close(self) -> list[PendingTask]:
        """Close as `Timer.close` does; return once a callback that runs on the timer's thread has ended.

        Callbacks that an `executor` is running continue: shut the executor down to wait for them.

        In a callback of any timer it returns at once: two callbacks that close each other's timers would deadlock.
        It also returns at once while the interpreter shuts down.
        """
        pending = super().close()
        enter(self)
        try:
            self._alarm()
        finally:
            leave(self)
        thread = self._thread
        # While the interpreter shuts down, a daemon thread no longer runs, and a join would never return.
        if thread is not None and not is_finalizing() and not isinstance(threading.current_thread(), _Driver):
            thread.join()
        return pending

    def _get_ready(self) -> bool:
        self._start_thread()
        return True

    def _start_thread(self) -> None:
        if not self._is_made():
            Timer._get_ready(self)  # which raises
        # If this raises, so does the caller, before it adds a task that would never run. The lock is reentrant, and
        # `_begins` set, because the garbage collector may run a `__del__` in here that starts a task as well.
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
        """Run the due tasks. Return the nanoseconds to sleep; NEVER to sleep until woken; _ENDED to end the thread."""
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
        ended = 0  # the end of the last callback, if it was measured and the next one follows directly
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
                    if upcoming > now:  # all tasks due at the last reading of the clock have run: read it again
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
                item = None  # destructors of its arguments count as part of its callback
                ended = monotonic_ns()
                if self._meter is not None:
                    self._meter._add(late, ended - starts)
            item = None  # dropped before the next one is polled
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

        Its error is not reported here, as an executor that drops its jobs may hold its own lock meanwhile.
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
        # Not in `_turn`: a later error may refer to its frame, and so to the list that would hold it.
        emptied: list[tuple[BaseException, object]] = []  # made outside the lock: it may start a garbage collection
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
        """Close after an error outside callbacks (out of memory, say): refuse new tasks, and report the error.

        Pending tasks stay, for `close` to return.
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
    """The thread that runs a timer's tasks."""


def start_driver(target: Any, args: tuple[Any, ...], name: str, timer: Any) -> _Driver:
    """Start a thread that calls `target(*args)` and return it. Raises RuntimeError if Python has no threads.

    The thread is a daemon, except in subinterpreters that allow none: there `timer`, a weak reference, is closed when
    the interpreter ends.
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
    """Run the thread's loop: run due tasks, sleep, repeat, until the timer is closed or collected."""
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
