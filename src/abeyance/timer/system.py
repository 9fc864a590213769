"""A timer with a thread of its own, on the machine's monotonic clock."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor
from datetime import timedelta

from abeyance.timer.base import ErrorHandler, PendingTask, Timer, _unpack
from abeyance.timer.units import NANOSECONDS, NEVER

_AWAKE = -1  # for `_sleeps_until`: the thread is running, and will look at the wheel before it sleeps


class SystemTimer(Timer):
    """One thread that sleeps until the next bucket comes up, and no longer than that.

    The thread begins with the first task and is a daemon: it does not keep the interpreter alive. It wakes when
    a bucket comes up, and earlier only when a task with an earlier deadline appears (T10). Source of the idea:
    Kafka's `SystemTimer`, whose reaper waits on a delay queue of buckets.

    Callbacks run on that thread, one after another, so a slow one delays the rest; pass an `executor` to run
    them elsewhere (a task counts as run when it has been submitted: cancelling it after that returns False).
    """

    def __init__(
        self,
        name: str = "abeyance",
        *,
        tick: float | timedelta = 0.001,
        wheel_size: int = 64,
        executor: Executor | None = None,
        on_error: ErrorHandler | None = None,
    ) -> None:
        """`tick` in seconds; `name` is the thread's; `on_error(error, callback)` gets what callbacks raise."""
        super().__init__(tick, wheel_size, time.monotonic_ns(), on_error)
        self.name = name
        self._executor = executor
        self._wake = threading.Condition(self._lock)
        self._sleeps_until = _AWAKE  # ns; written under the lock
        self._thread: threading.Thread | None = None

    def _now(self) -> int:
        return time.monotonic_ns()

    def close(self) -> list[PendingTask]:
        """As `Timer.close`; returns when a callback that is running has ended (unless called by that one)."""
        pending = super().close()
        with self._lock:
            thread = self._thread
            self._wake.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        return pending

    def _prepare(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._drive, name=f"{self.name}-timer", daemon=True)
            thread.start()  # may raise; it then waits for the lock, which the caller holds
            self._thread = thread

    def _deadline_added(self, deadline: int) -> None:
        # The thread need not wake for a bucket that comes up earlier but holds only later deadlines.
        if deadline < self._sleeps_until:
            self._sleeps_until = deadline
            self._wake.notify()

    def _drive(self) -> None:
        while True:
            with self._lock:
                item = self._wheel.poll(self._now())
                while item is None:
                    if self._closed:
                        return
                    upcoming = self._wheel.next_expiration()
                    delay = NEVER if upcoming is None else upcoming - self._now()
                    if delay > 0:
                        self._sleeps_until = NEVER if upcoming is None else upcoming
                        self._wake.wait(None if upcoming is None else delay / NANOSECONDS)
                        self._sleeps_until = _AWAKE
                        self._wakeups += 1
                    item = self._wheel.poll(self._now())
            if self._executor is None:
                self._run(item)
            else:
                self._submit(self._executor, item)
            del item  # not to be kept alive while the thread sleeps

    def _run(self, item: object) -> None:
        try:
            super()._run(item)
        except BaseException as error:  # noqa: BLE001  (SystemExit and the like must not end the thread: T8)
            self._report(error, _unpack(item)[0])

    def _submit(self, executor: Executor, item: object) -> None:
        try:
            executor.submit(self._run, item)
        except Exception as error:  # noqa: BLE001  (an executor that was shut down, or is full)
            self._report(error, _unpack(item)[0])

    def __repr__(self) -> str:
        return f"<SystemTimer {self.name!r}, {'closed' if self._closed else f'{len(self)} pending'}>"
