# cython: nonecheck=True
"""The pending timers of one event loop: a wheel of handles, and the clock that it follows.

A tick is 2**-20 s, about a microsecond. A float times a power of two loses nothing, so what is due is decided exactly,
by the last bit of `loop.time()`, whatever clock has been put in its place. A handle is filed by its deadline's tick
rounded *down*, and is due when its deadline itself has been reached: one whose tick has begun, while its deadline
has not, waits for the rest of that microsecond in `_near`. So nothing is early (T1), nothing is rounded, and a timer
meant for 0.1 on a virtual clock runs at 0.1 and not at the next tick.

Not thread-safe, as asyncio's loops are not: only the loop's own thread gets here.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.aio.calling import current_context
    from abeyant.aio.unpatched import is_unpatched, version_of
    from abeyant.timer.clock import monotonic_ns, whole
else:
    from cython.cimports.abeyant.aio.calling import current_context
    from cython.cimports.abeyant.aio.unpatched import is_unpatched, version_of
    from cython.cimports.abeyant.timer.clock import monotonic_ns, whole

from abeyant.aio.handle import TimerHandle, creation_stack
from abeyant.engine.wheel import MAX_TIME, TimingWheel

_TICKS = 1048576.0  # in a second
_MOST = 4611686018427387904.0  # ticks: MAX_TIME, where what is infinite or beyond 139,000 years is filed
_NEVER = MAX_TIME
_EARLIEST = -MAX_TIME // 2  # a clock may begin 70,000 years before its zero: what is to come still fits 64 bits
_WHEEL_SIZE = 256
_NANOSECONDS = 1e9  # in a second

# One turn hands out so many timers at most, and stops filing others anew after so long (seconds): a million
# time-outs at once are taken between looks at the sockets, not before the next one.
_TURN = 512
_SLICE = 0.001


def monotonic() -> float:
    """Return `time.monotonic()`, as it is found now: freezegun and others may have replaced it."""
    return time.monotonic()


class Schedule:
    """Handles by deadline, in seconds on the loop's clock: its own one, unless `clock` has been put in its place."""

    __slots__ = ("_ask", "_loop", "_near", "_order", "_origin", "_reached", "_version", "_wheel", "clock")

    def __init__(self, loop: object, ask: Callable[[], float] | None) -> None:
        """`ask` returns the time of `loop`; None for the machine's clock, also while Python's is patched.

        It is not called yet: the loop may be half made.
        """
        self.clock: Callable[[], float] | None = None
        self._loop: object = loop
        self._ask = ask
        self._version = 0
        self._near: list[tuple[float, int, TimerHandle]] = []  # heap: their tick has begun, their deadline has not come
        self._order = 0
        self._begin(0)

    def _begin(self, tick: int) -> None:
        # A wheel begins at 0 or later: where the clock does not, the wheel's ticks are counted from an earlier origin.
        self._origin = max(min(tick, 0), _EARLIEST)
        self._reached = tick
        self._wheel = TimingWheel(1, _WHEEL_SIZE, max(0, tick))

    def now(self) -> float:
        """Return the time, in seconds: what `loop.time()` says, to the bit."""
        return self.own() if self.clock is None else self.clock()

    def own(self) -> float:
        """Return the time by the loop's own clock, which is `time.monotonic` as it is found at each call.

        A patch of it (freezegun, mock) moves our loop as it moves asyncio's. Without one, C reads the machine's.
        """
        if self._ask is None or (self.is_plain() and is_unpatched()):
            return monotonic_ns() / _NANOSECONDS
        return self._ask()

    def is_plain(self) -> bool:
        """Return whether `trust` was called with True and still holds. Never so in interpreted code."""
        return self._version != 0 and self._version == version_of(self._loop)

    def trust(self, plain: bool) -> None:
        """Let C read the clock, if the loop's class is `plain`: its `time` leads to `time.monotonic` and no further.

        It holds until an attribute of the class or of one of its bases is set.
        """
        self._version = version_of(self._loop) if plain else 0

    def use_clock(self, clock: Callable[[], float] | None) -> None:
        """Follow another clock from here on, None for the loop's own. Deadlines keep their meaning: `when()`.

        O(pending), as whenever the clock goes back, for a wheel's time never does.
        """
        self.clock = clock
        self._file_anew(self._tick_of(self.now()))

    def _file_anew(self, tick: int) -> None:
        handles: list[Any] = [entry[2] for entry in sorted(self._near)]
        handles += [item for _, item in self._wheel.drain()]
        self._near = []
        self._begin(tick)
        for handle in handles:
            if not handle._cancelled:
                self._file(handle)

    def add(
        self,
        loop: asyncio.AbstractEventLoop,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        debug: bool,
    ) -> TimerHandle:
        """File a call at `when`. O(1)."""
        handle = TimerHandle.__new__(TimerHandle)
        handle._loop = loop
        handle._deadline = when
        handle._whole = False
        handle._callback = callback
        handle._args = args
        handle._context = current_context() if context is None else context
        handle._cancelled = False
        handle._repr = None
        handle._source_traceback = creation_stack() if debug else None
        self._file(handle)
        return handle

    def _file(self, handle: TimerHandle) -> None:
        handle._wheel = self._wheel
        handle._ticket = self._wheel._add(self._on_wheel(self._tick_of(handle._deadline)), handle)

    def upcoming(self) -> float | None:
        """Return when there is something to do next, in seconds on the clock; None when nothing is pending."""
        return self._upcoming_at(self.now())

    def patience(self) -> float | None:
        """Return how many seconds there is nothing to do, None for ever. Like asyncio, read the clock once at most."""
        if not self._near and not len(self._wheel):
            return None
        now = self.now()
        upcoming = self._upcoming_at(now)
        return None if upcoming is None else max(0.0, upcoming - now)

    def _upcoming_at(self, now: float) -> float | None:
        tick = self._tick_of(now)
        if tick < self._reached:
            self._file_anew(tick)
        ticks = self._wheel.next_expiration()
        if ticks is not None:
            ticks += self._origin
        while self._near and self._near[0][2]._cancelled:
            heappop(self._near)
        if self._near and (ticks is None or self._near[0][0] < ticks / _TICKS):
            return self._near[0][0]
        return None if ticks is None else ticks / _TICKS

    def earliest(self) -> TimerHandle | None:
        """Return the handle with the earliest deadline, exactly; None where nothing is pending. As the wheel's."""
        self.upcoming()  # drops what is cancelled, and follows a clock that went back
        found = self._wheel.earliest()
        handles: list[Any] = [] if found is None else found[1]
        if self._near:
            handles.append(self._near[0][2])
        return min(handles, key=TimerHandle.when, default=None)

    def collect(self, ready: deque[Any]) -> None:
        """Append what is due to `ready`, in order: at most one turn's worth; `upcoming` says if there is more."""
        now = self.now()
        tick = self._tick_of(now)
        if tick < self._reached:  # the clock went back
            self._file_anew(tick)
        self._reached = tick
        left = _TURN
        while left > 0:
            handed: list[Any] = self._wheel.advance(self._on_wheel(tick), left)
            for handle in handed:
                self._take(handle, now, ready)
            left -= len(handed)
            upcoming = self._wheel.next_expiration()
            if upcoming is None or upcoming > self._on_wheel(tick):
                self._take_near(tick, now, ready)
                return
            if self.now() - now > _SLICE:
                return

    def _take(self, handle: TimerHandle, now: float, ready: deque[Any]) -> None:
        if handle._deadline <= now:
            if self._near:  # a deadline that was past when it was added may be of an earlier tick than theirs (T6)
                self._take_near(self._tick_of(handle._deadline), now, ready)
            ready.append(handle)
        else:
            heappush(self._near, (handle._deadline, self._order, handle))
            self._order += 1

    def _take_near(self, tick: int, now: float, ready: deque[Any]) -> None:
        """Move the handles that are due within a tick to the ready queue."""
        while self._near and self._near[0][0] <= now and self._tick_of(self._near[0][0]) <= tick:
            ready.append(heappop(self._near)[2])

    def pending(self) -> list[TimerHandle]:
        """Return all pending handles by deadline. O(n log n), for debugging."""
        handles: list[Any] = [entry[2] for entry in self._near if not entry[2]._cancelled]
        return sorted(handles + self._wheel.items(), key=TimerHandle.when)

    def clear(self) -> None:
        """Release all handles, and the loop, which has been closed: none will be called."""
        self._near.clear()
        self._wheel.drain()
        self._loop = None
        if self._ask is not None:
            self._ask = monotonic

    def _on_wheel(self, tick: int) -> int:
        """Return the tick as the wheel counts it."""
        return min(tick - self._origin, _NEVER)

    def _tick_of(self, seconds: float) -> int:
        ticks = seconds * _TICKS
        if -_MOST < ticks < _MOST:
            return whole(ticks)
        if ticks != ticks:
            raise ValueError("a timer's time must be a number of seconds, not NaN")
        return _NEVER if ticks > 0 else -_NEVER
