"""The virtual time of a loop: the current time, and its next value. Independent of the loop's implementation."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Iterable
from datetime import timedelta

from abeyant.aio.virtual.deadlock import DeadlockError
from abeyant.timer.units import as_float


class Timeline:
    """The virtual time of a loop. `mount` installs it, and `selector` moves it when nothing else can run.

    Use it from the loop's thread; only `time` is thread-safe.
    """

    def __init__(
        self,
        *,
        start: float | timedelta | None,
        autojump: bool,
        io_grace: float | timedelta,
        patience: float | timedelta,
        limit: float | timedelta,
        clocks: bool,
        ignore_threads: str | Iterable[str],
    ) -> None:
        """Check and store the options of `VirtualClock`. Raises TypeError and ValueError."""
        if not isinstance(clocks, bool):
            raise TypeError(f"clocks must be True or False, not {clocks!r}")
        if not isinstance(autojump, bool):
            raise TypeError(f"autojump must be True or False, not {autojump!r}")
        self.autojump = autojump
        self.clocks = clocks
        self._start = None if start is None else span(start, "start")
        self._io_grace = span(io_grace, "io_grace")
        self._patience = span(patience, "patience", endless=True)
        self._limit = span(limit, "limit", endless=True)
        self._ignore_threads = (ignore_threads,) if isinstance(ignore_threads, str) else tuple(ignore_threads)
        for name in self._ignore_threads:
            if not isinstance(name, str):
                raise TypeError(f"ignore_threads must be names of threads or patterns of them, not {name!r}")
        self._time = self._start or 0.0
        self._end_of_time = math.inf
        self._loop: asyncio.AbstractEventLoop | None = None  # None outside of virtual time
        self._task: asyncio.Task[object] | None = None  # the one that entered, which a deadlock cancels
        self._deadlock: DeadlockError | None = None  # for that task to raise
        self._stops: list[tuple[float, int, asyncio.Future[bool]]] = []  # heap of the ends of `advance` calls
        self._to_next: list[asyncio.Future[bool]] = []  # pending calls of `advance_to_next`
        self._order = itertools.count()

    def time(self) -> float:
        """Return the time in seconds, like `loop.time()`."""
        return self._time

    async def advance(self, seconds: float | timedelta) -> None:
        """Advance by `seconds`. Timers that come due on the way run in order, each at its deadline.

        Returns when the clock has moved by exactly `seconds`, and nothing more can run at that time; for 0 seconds when
        nothing more can run now. Raises ValueError for a negative time, and RuntimeError outside of virtual time.
        """
        step = span(seconds, "seconds")
        if self._loop is None:
            raise RuntimeError("this clock is not in use: advance it inside `async with clock:`")
        arrival = self._loop.create_future()
        heapq.heappush(self._stops, (self._time + step, next(self._order), arrival))
        await arrival

    async def advance_to(self, time: float | timedelta) -> None:
        """Advance to `time` in seconds on this clock, as `advance` does. Raises ValueError for a time in the past."""
        target = span(time, "time")
        if target < self._time:
            raise ValueError(f"time must be {self._time:.9g} or later, as time does not go back, not {time!r}")
        await self.advance(target - self._time)

    async def advance_to_next(self) -> float | None:
        """Advance to the loop's next deadline and run the timers that are due then. Return the seconds that passed.

        Returns when nothing more can run at that time; returns None, without moving, if no timer is pending. Raises
        RuntimeError outside of virtual time. (`ManualTimer` and a cluster's held clock have methods of this name that
        are not awaitable; the method of `ManualTimer` returns how many tasks ran.)
        """
        if self._loop is None:
            raise RuntimeError("this clock is not in use: advance it inside `async with clock:`")
        began = self._time
        arrival = self._loop.create_future()
        self._to_next.append(arrival)
        return self._time - began if await arrival else None

    def _step(self, deadline: float | None) -> float | None:
        """Return the time to which the clock moves next, given the loop's next `deadline`; None if it cannot move.

        If an `advance` ends at a deadline, the deadline comes first, so that advancing by 5 s runs timers due at 5 s.
        """
        while self._stops and self._stops[0][2].done():  # the advancing task was cancelled
            heapq.heappop(self._stops)
        self._to_next = [arrival for arrival in self._to_next if not arrival.done()]
        if self._to_next and deadline is None:
            return self._time  # `_move` returns None to them
        stop = self._stops[0][0] if self._stops else None
        if stop is None:
            return deadline if self.autojump or self._to_next else None
        return stop if deadline is None else min(stop, deadline)

    def _move(self, to: float, deadline: float | None) -> None:
        """Move the clock to `to`, which `_step` returned, and complete the calls that wait for this time."""
        self._time = max(self._time, to)
        if deadline is None or to == deadline:
            for arrival in self._to_next:
                if deadline is None:
                    arrival.set_result(False)
                else:  # return once what is due there has run
                    heapq.heappush(self._stops, (to, next(self._order), arrival))
            if self._to_next:
                self._to_next = []
                return
        if self._stops and (deadline is None or to < deadline):
            heapq.heappop(self._stops)[2].set_result(True)

    def _creep_target(self, to: float) -> float | None:
        """Return how far the clock can creep towards `to`: not past the end of an `advance`; None if it cannot move."""
        if self._stops:
            return min(to, self._stops[0][0])
        return to if self.autojump or self._to_next else None

    def _creep(self, to: float) -> None:
        """Move the clock to `to`, which `_creep_target` returned, and complete an `advance` that ends there."""
        self._time = max(self._time, to)
        if self._stops and self._stops[0][0] <= to:
            arrival = heapq.heappop(self._stops)[2]
            if not arrival.done():
                arrival.set_result(True)

    def _begin(self, loop: asyncio.AbstractEventLoop, start: float) -> None:
        self._loop = loop
        self._time = start
        self._end_of_time = start + self._limit

    def _end(self) -> None:
        self._loop = None
        for arrival in [*self._to_next, *(stop[2] for stop in self._stops)]:
            arrival.cancel("virtual time has ended")
        self._to_next.clear()
        self._stops.clear()

    def __repr__(self) -> str:
        how = "autojump" if self.autojump else "manual"
        return f"<{type(self).__name__} at {self._time:.9g}s, {how}{'' if self._loop else ', not in use'}>"


def span(value: float | timedelta, name: str, *, endless: bool = False) -> float:
    """Return a non-negative duration as float. Raises TypeError and ValueError that name the argument `name`."""
    length = as_float(value, name)
    if not 0 <= length <= math.inf or (length == math.inf and not endless):
        raise ValueError(f"{name} must be {'0 or more' if endless else 'finite, and 0 or more'}, not {value!r}")
    return length
