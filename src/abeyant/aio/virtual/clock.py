"""What the user holds: a virtual clock, and the block in which it holds."""

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
    """A clock for an asyncio loop that moves when nothing else can, and then all at once.

    `async with clock:` holds it on the running loop, `run_virtual(main(), clock=clock)` on a loop of its own. All
    of it belongs to the loop's thread; `time` may be read from any.

    Not thread time: `time.sleep` and timers of other threads are real, and without `clocks` Python's clocks are, too.
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
        """Times in seconds, or timedelta.

        `start`: what the loop's time is to be on entering; else, on a loop of the clock's own, 0, and on a running
        one the next whole second, so that adding seconds stays exact, or, where timers are pending, its time as it
        is. `autojump`: move by itself, else only in `advance`. `io_grace`: while a socket to somewhere outside the
        loop is open or another thread runs, so much *real* silence is waited for before the clock moves. `patience`:
        so much *real* silence is waited for while an executor job or a subprocess runs, or while only the outside
        could go on, before that is reported as a deadlock. `limit`: so much virtual time may pass after entering
        before whatever is still waiting is reported. `clocks`: let `time.time`, `datetime.now`, `time.monotonic` and
        their like show the loop's time, not the machine's; needs time-machine (AbeyantError where it is missing).
        `ignore_threads`: threads that are not waited for, by their names
        or their classes' names, or patterns of those as in `fnmatch` ("*" is all).

        Raises TypeError for what is no time and ValueError for one that is negative or not finite (`patience` and
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
        self._mount: Mount | None = None  # of its own block; where the loop is the clock's, that is virtual throughout

    async def __aenter__(self) -> Self:
        """Hold this clock on the running loop. Raises RuntimeError where one is held, or none can be."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._mount = Mount(loop, self)
        elif self._task is not None or self._loop is not loop:
            raise RuntimeError(f"{self!r} is in use already")
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the loop's time go on from here at its usual pace; raise the deadlock if there was one."""
        mount, deadlock, task = self._mount, self._deadlock, self._task
        self._mount = self._deadlock = self._task = None
        if mount is not None:
            mount.take_off()
        if deadlock is not None:
            if task is not None:
                task.uncancel()
            if isinstance(error, asyncio.CancelledError):
                raise deadlock.with_traceback(traceback) from None  # from where this task waited
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
    """Return a clock to hold with `async with ... as clock`: virtual time on the running loop. See `VirtualClock`.

    Works on asyncio's selector loops, ours included. Raises DeadlockError, at the end of the block, when nothing can
    run any more.
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
