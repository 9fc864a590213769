"""The virtual clock: what time it is, where it may go next, and the block in which it holds."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from datetime import timedelta
from numbers import Real
from types import TracebackType
from typing import Self

from abeyance.aio.virtual.deadlock import DeadlockError
from abeyance.aio.virtual.mount import Mount

IO_GRACE = 0.1
PATIENCE = 30.0


class VirtualClock:
    """A clock for an asyncio loop that moves when nothing else can, and then all at once.

    `async with clock:` holds it on the running loop, `run_virtual(main(), clock=clock)` on a loop of its own. All
    of it belongs to the loop's thread; `time` may be read from any.

    Not thread time: `time.monotonic`, `time.sleep` and timers of other threads are real.
    """

    def __init__(
        self,
        *,
        start: float | timedelta | None = None,
        autojump: bool = True,
        io_grace: float | timedelta = IO_GRACE,
        patience: float | timedelta = PATIENCE,
        limit: float | timedelta = math.inf,
    ) -> None:
        """Times in seconds, or timedelta.

        `start`: what the loop's time is to be on entering; else the next whole second, so that adding seconds stays
        exact, and 0 on a loop of the clock's own. `autojump`: move by itself, else only in `advance`. `io_grace`:
        while a socket to somewhere outside the loop is open or another thread runs, so much *real* silence is waited
        for before the clock moves. `patience`: so much *real* silence is waited for while an executor job or a
        subprocess runs, or while only the outside could go on, before that is reported as a deadlock. `limit`: so
        much virtual time may pass after entering before whatever is still waiting is reported.

        Raises TypeError for what is no time and ValueError for one that is negative or not finite (`patience` and
        `limit` may be infinite).
        """
        if not isinstance(autojump, bool):
            raise TypeError(f"autojump must be True or False, not {autojump!r}")
        self.autojump = autojump
        self._start = None if start is None else span(start, "start")
        self._io_grace = span(io_grace, "io_grace")
        self._patience = span(patience, "patience", endless=True)
        self._limit = span(limit, "limit", endless=True)
        self._time = self._start or 0.0
        self._end_of_time = math.inf
        self._mount: Mount | None = None
        self._task: asyncio.Task[object] | None = None  # the one that entered, and is told of a deadlock
        self._deadlock: DeadlockError | None = None  # told to it, not yet raised
        self._stops: list[tuple[float, int, asyncio.Future[None]]] = []  # where `advance` calls end: a heap
        self._order = itertools.count()

    def time(self) -> float:
        """The time in seconds, as `loop.time()` gives it."""
        return self._time

    async def advance(self, seconds: float | timedelta) -> None:
        """Let `seconds` pass: what comes due on the way runs in order, each at its own time.

        Returns when the clock has moved by exactly that and nothing more can run at that time; with 0, as soon as
        nothing more can run now. Raises ValueError when negative, and RuntimeError outside of the block.
        """
        step = span(seconds, "seconds")
        if self._mount is None:
            raise RuntimeError("this clock is on no loop: advance it inside `async with clock:`")
        arrival = self._mount.loop.create_future()
        heapq.heappush(self._stops, (self._time + step, next(self._order), arrival))
        await arrival

    def _step(self, deadline: float | None) -> float | None:
        """Where the clock goes from here, with the loop's next expiration at `deadline`; None is nowhere.

        An expiration at the end of an `advance` comes first, so that advancing by 5 s is to have seen 5 s.
        """
        while self._stops and self._stops[0][2].done():  # whoever advanced was cancelled
            heapq.heappop(self._stops)
        stop = self._stops[0][0] if self._stops else None
        if stop is None:
            return deadline if self.autojump else None
        return stop if deadline is None else min(stop, deadline)

    def _move(self, to: float, deadline: float | None) -> None:
        """Go where `_step` says."""
        self._time = max(self._time, to)
        if self._stops and (deadline is None or to < deadline):
            heapq.heappop(self._stops)[2].set_result(None)

    def _begin(self, mount: Mount, start: float) -> None:
        self._mount = mount
        self._time = start
        self._end_of_time = start + self._limit

    def _end(self) -> None:
        self._mount = None
        for _, _, arrival in self._stops:
            arrival.cancel("virtual time has ended")
        self._stops.clear()

    async def __aenter__(self) -> Self:
        """Hold this clock on the running loop. Raises RuntimeError where one is held, or none can be."""
        loop = asyncio.get_running_loop()
        if self._mount is None:
            Mount(loop, self)
        elif self._task is not None or self._mount.loop is not loop:
            raise RuntimeError(f"{self!r} is in use already")
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the loop's time go on from here at its usual pace; raise the deadlock if there was one."""
        mount, deadlock, task = self._mount, self._deadlock, self._task
        self._deadlock = self._task = None
        if mount is not None and not mount.lasting:
            mount.take_off()
        if deadlock is not None:
            if task is not None:
                task.uncancel()
            if isinstance(error, asyncio.CancelledError):
                raise deadlock.with_traceback(traceback) from None  # from where this task waited
            raise deadlock from error

    def __repr__(self) -> str:
        how = "jumping" if self.autojump else "by hand"
        return f"<VirtualClock at {self._time:.9g}s, {how}{'' if self._mount else ', on no loop'}>"


def virtual_time(
    *,
    start: float | timedelta | None = None,
    autojump: bool = True,
    io_grace: float | timedelta = IO_GRACE,
    patience: float | timedelta = PATIENCE,
    limit: float | timedelta = math.inf,
) -> VirtualClock:
    """A clock to hold with `async with ... as clock`: virtual time on the running loop. See `VirtualClock`.

    Works on asyncio's selector loops, ours included. Raises DeadlockError, at the end of the block, when nothing can
    run any more.
    """
    return VirtualClock(start=start, autojump=autojump, io_grace=io_grace, patience=patience, limit=limit)


def span(value: float | timedelta, name: str, *, endless: bool = False) -> float:
    """A span of time, from 0, as float. Raises TypeError and ValueError, naming the argument `name`."""
    number: object = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(number, (float, int, Real)) or isinstance(number, bool):
        raise TypeError(f"{name} must be seconds (a number or a timedelta), not {value!r}")
    length = float(number)
    if not 0 <= length <= math.inf or (length == math.inf and not endless):
        raise ValueError(f"{name} must be {'0 or more' if endless else 'finite, and 0 or more'}, not {value!r}")
    return length
