"""The virtual clock, a context manager for virtual time on the running loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from datetime import timedelta
from types import TracebackType
from typing import Self

from abeyant.aio.virtual.mount import Mount
from abeyant.aio.virtual.python_clocks import check_installed
from abeyant.aio.virtual.timeline import Timeline

IO_GRACE = 0.1
PATIENCE = 30.0


class VirtualClock(Timeline):
    """A clock for an asyncio loop that jumps to the next deadline when nothing else can run.

    `async with clock:` uses the clock on the running loop, `run_virtual(main(), clock=clock)` on a new loop. Use the
    clock from the loop's thread; only `time` is thread-safe.

    The clock does not affect threads: `time.sleep` and the timers of other threads take real time. Python's own clocks
    show real time, unless `clocks` is True.
    """

    def __init__(
        self,
        *,
        start: float | timedelta | None = None,
        autojump: bool = True,
        io_grace: float | timedelta = IO_GRACE,
        patience: float | timedelta = PATIENCE,
        limit: float | timedelta = math.inf,
        clocks: bool = False,
        ignore_threads: str | Iterable[str] = (),
    ) -> None:
        """Create a clock. Times are in seconds, or timedelta.

        `start`: the loop's time on entering. Default: 0 on a new loop; on a running loop its current time, which is
        rounded up to a whole second if no timer is pending, so that adding seconds stays exact. `autojump`: jump
        automatically, else only in `advance`. `io_grace`: *real* time to wait for I/O before each jump, while a socket
        to outside the loop is open or another thread runs. `patience`: *real* time to wait for an executor job or a
        subprocess, or when only something outside the loop could continue, before a deadlock is reported. `limit`:
        virtual time from entering until pending tasks are reported as a deadlock. `clocks`: make `time.time`,
        `datetime.now`, `time.monotonic` and the like show the loop's time; needs time-machine (AbeyantError if it is
        missing). `ignore_threads`: names or class names of threads not to wait for, or `fnmatch` patterns ("*" is all).

        Raises TypeError for a value that is not a time, and ValueError for a negative or infinite value (`patience` and
        `limit` may be infinite).
        """
        super().__init__(
            start=start,
            autojump=autojump,
            io_grace=io_grace,
            patience=patience,
            limit=limit,
            ignore_threads=ignore_threads,
            clocks=clocks,
        )
        if clocks:
            check_installed()
        self._mount: Mount | None = None  # of `async with`; `run_virtual` has its own

    async def __aenter__(self) -> Self:
        """Start virtual time on the running loop. Raises RuntimeError if the clock is in use or the loop unsuitable."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._mount = Mount(loop, self)
        elif self._task is not None or self._loop is not loop:
            raise RuntimeError(f"{self!r} is in use already: create another VirtualClock")
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End virtual time: the loop's time continues from here in real time. Raise DeadlockError after a deadlock."""
        mount, deadlock, task = self._mount, self._deadlock, self._task
        self._mount = self._deadlock = self._task = None
        if mount is not None:
            mount.remove()
        if deadlock is not None:
            if task is not None:
                task.uncancel()
            if isinstance(error, asyncio.CancelledError):
                raise deadlock.with_traceback(traceback) from None  # raised where this task waited
            raise deadlock from error


def virtual_time(
    *,
    start: float | timedelta | None = None,
    autojump: bool = True,
    io_grace: float | timedelta = IO_GRACE,
    patience: float | timedelta = PATIENCE,
    limit: float | timedelta = math.inf,
    clocks: bool = False,
    ignore_threads: str | Iterable[str] = (),
) -> VirtualClock:
    """Return a `VirtualClock` with these options; its `async with` block puts the running loop into virtual time.

    Works on asyncio's selector loops, including ours. Raises DeadlockError, at the end of the block, when nothing can
    run any more.

    Examples:
        >>> async def main():
        ...     async with virtual_time(start=0.0) as clock:
        ...         await asyncio.sleep(3600.0)
        ...         return clock.time()
        >>> asyncio.run(main())
        3600.0
    """
    return VirtualClock(
        start=start,
        autojump=autojump,
        io_grace=io_grace,
        patience=patience,
        limit=limit,
        ignore_threads=ignore_threads,
        clocks=clocks,
    )
