# cython: nonecheck=True
"""The pending timers of one event loop: a wheel of handles, and the loop's clock.

A tick is 2**-20 s, about a microsecond. To multiply a float by a power of two is exact, so a handle is due exactly when
the loop's clock, whichever it is, reaches its deadline. The wheel holds a handle under its deadline's tick, rounded
*down*. Between that tick and the deadline, for less than a microsecond, the handle waits in `_near`. So no handle is
early (T1), no deadline is rounded, and a timer for 0.1 on a virtual clock runs at 0.1 and not at the next tick.

Not thread-safe, like asyncio's loops: use it from the loop's thread only.
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
from abeyant.engine.wheel import MAX_TIME, TimingWheel, WheelStats

_TICKS = 1048576.0  # in a second
_MOST = 4611686018427387904.0  # ticks: MAX_TIME, for deadlines that are infinite or beyond 139,000 years
_NEVER = MAX_TIME
_EARLIEST = -MAX_TIME // 2  # a clock may begin 70,000 years before its zero: later deadlines still fit 64 bits
_WHEEL_SIZE = 256
_NANOSECONDS = 1e9  # in a second

# Budget of one turn, so that a million time-outs at once do not keep the loop from its sockets.
_TURN = 512  # timers that become due
_SLICE = 0.001  # seconds for moving other timers within the wheel


def monotonic() -> float:
    """Return `time.monotonic()`. Look the function up at each call, as freezegun and others may replace it."""
    return time.monotonic()


class Schedule:
    """The pending handles of a loop by deadline: in seconds on the loop's own clock, or on `clock` if that is set."""

    __slots__ = ("_loop", "_near", "_order", "_origin", "_reached", "_read_clock", "_version", "_wheel", "clock")

    def __init__(self, loop: object, read_clock: Callable[[], float] | None) -> None:
        """Create an empty schedule. `read_clock` returns the time of `loop` in seconds.

        None stands for the machine's clock, even if `time.monotonic` is patched. The constructor does not call
        `read_clock`, as the loop may not be initialised yet.
        """
        self.clock: Callable[[], float] | None = None
        self._loop: object = loop
        self._read_clock = read_clock
        self._version = 0
        self._near: list[tuple[float, int, TimerHandle]] = []  # heap: the tick has begun, the deadline not yet
        self._order = 0
        self._begin(0)

    def _begin(self, tick: int) -> None:
        # A wheel begins at 0 or later. If the clock begins earlier, count the wheel's ticks from an earlier origin.
        self._origin = max(min(tick, 0), _EARLIEST)
        self._reached = tick
        self._wheel = TimingWheel(1, _WHEEL_SIZE, max(0, tick))

    def now(self) -> float:
        """Return exactly what `loop.time()` returns, in seconds."""
        return self.own() if self.clock is None else self.clock()

    def own(self) -> float:
        """Return the time on the loop's own clock, in seconds: `time.monotonic`, looked up at each call.

        Patches of `time.monotonic` (freezegun, mock) affect our loop as they affect asyncio's. If the function is not
        patched, C reads the clock.
        """
        if self._read_clock is None or (self.is_plain() and is_unpatched()):
            return monotonic_ns() / _NANOSECONDS
        return self._read_clock()

    def is_plain(self) -> bool:
        """Return whether `trust(True)` was called and is still valid. Always False in interpreted code."""
        return self._version != 0 and self._version == version_of(self._loop)

    def trust(self, plain: bool) -> None:
        """Let C read the clock if the loop's class is `plain`: its method `time` only calls `time.monotonic`.

        The call is valid until an attribute of the class or of one of its bases is set.
        """
        self._version = version_of(self._loop) if plain else 0

    def use_clock(self, clock: Callable[[], float] | None) -> None:
        """Use `clock` from now on; None for the loop's own clock. Deadlines (`when()`) stay the same.

        O(pending): a wheel's time cannot go back, so all handles move to a new wheel, as whenever the clock goes back.
        """
        self.clock = clock
        self._rebuild(self._tick_of(self.now()))

    def _rebuild(self, tick: int) -> None:
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
        """Schedule `callback(*args)` at `when`, in seconds, and return its handle. O(1)."""
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
        """Return the time of the next wake-up, in seconds on the clock; None if nothing is pending."""
        return self._upcoming_at(self.now())

    def seconds_to_next(self) -> float | None:
        """Return the seconds until the next wake-up, None if nothing is pending. Reads the clock at most once."""
        if not self._near and not len(self._wheel):
            return None
        now = self.now()
        upcoming = self._upcoming_at(now)
        return None if upcoming is None else max(0.0, upcoming - now)

    def _upcoming_at(self, now: float) -> float | None:
        tick = self._tick_of(now)
        if tick < self._reached:
            self._rebuild(tick)
        ticks = self._wheel.next_expiration()
        if ticks is not None:
            ticks += self._origin
        while self._near and self._near[0][2]._cancelled:
            heappop(self._near)
        if self._near and (ticks is None or self._near[0][0] < ticks / _TICKS):
            return self._near[0][0]
        return None if ticks is None else ticks / _TICKS

    def earliest(self) -> TimerHandle | None:
        """Return the handle with exactly the earliest deadline; None if nothing is pending."""
        self.upcoming()  # drops cancelled handles, and rebuilds the wheel if the clock went back
        found = self._wheel.earliest()
        handles: list[Any] = [] if found is None else found[1]
        if self._near:
            handles.append(self._near[0][2])
        return min(handles, key=TimerHandle.when, default=None)

    def collect(self, ready: deque[Any]) -> None:
        """Append the due handles to `ready`, in order, up to the budget of one turn (`_TURN`, `_SLICE`)."""
        now = self.now()
        tick = self._tick_of(now)
        if tick < self._reached:  # the clock went back
            self._rebuild(tick)
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
            if self._near:  # a deadline in the past may have an earlier tick than these (T6)
                self._take_near(self._tick_of(handle._deadline), now, ready)
            ready.append(handle)
        else:
            heappush(self._near, (handle._deadline, self._order, handle))
            self._order += 1

    def _take_near(self, tick: int, now: float, ready: deque[Any]) -> None:
        """Move the handles in `_near` that are due, and whose tick is at most `tick`, to the ready queue."""
        while self._near and self._near[0][0] <= now and self._tick_of(self._near[0][0]) <= tick:
            ready.append(heappop(self._near)[2])

    def stats(self) -> WheelStats:
        """Return the counts since the schedule was made, or since the clock last went back. O(1), from any thread."""
        counts, near = self._wheel.stats(), len(self._near)
        return counts._replace(pending=counts.pending + near, expired=counts.expired - near)

    def pending(self) -> list[TimerHandle]:
        """Return all pending handles by deadline. O(n log n), for debugging."""
        handles: list[Any] = [entry[2] for entry in self._near if not entry[2]._cancelled]
        return sorted(handles + self._wheel.items(), key=TimerHandle.when)

    def clear(self) -> None:
        """Release all handles and the loop, after the loop was closed."""
        self._near.clear()
        self._wheel.drain()
        self._loop = None
        if self._read_clock is not None:
            self._read_clock = monotonic

    def _on_wheel(self, tick: int) -> int:
        """Convert a tick of the clock to a tick of the wheel, which starts at `_origin`."""
        return min(tick - self._origin, _NEVER)

    def _tick_of(self, seconds: float) -> int:
        ticks = seconds * _TICKS
        if -_MOST < ticks < _MOST:
            return whole(ticks)
        if ticks != ticks:
            raise ValueError("a timer's time must be a number of seconds, not NaN")
        return _NEVER if ticks > 0 else -_NEVER
