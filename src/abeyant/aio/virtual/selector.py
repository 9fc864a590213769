"""The selector of virtual time, which moves the clock instead of sleeping.

A loop calls `select(timeout)` once per turn, with the time until its next timer. Nothing in the loop runs during this
call. So this is the place to detect that nothing else can run, and to move the clock.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Mapping
from typing import Any

from abeyant.aio.timer import timer_of
from abeyant.aio.virtual.deadlock import DeadlockError, all_waiting
from abeyant.aio.virtual.outside import Outlook, Outside
from abeyant.aio.virtual.real_clocks import RealClocks
from abeyant.aio.virtual.timeline import Timeline

_Events = list[tuple[selectors.SelectorKey, int]]
_SPINNING = 2_000  # turns without I/O in which the clock moved by less than a tick
_TICK = 1e-9  # seconds: the resolution of real clocks
_SHORTEST_STEP = 2.0**-60  # seconds: near 0, floats would allow far shorter ones
_LONGEST_STEP = 0.02  # seconds per `_SPINNING` turns: less than they take in real time
_FIRST_SLICE = 0.001  # real seconds between the first checks of the outside, doubled each time up to `_SLICE`
_SLICE = 0.05  # real seconds, the maximum between checks


class VirtualSelector(selectors.BaseSelector):
    """A wrapper of a loop's selector that moves the clock instead of sleeping."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, real: selectors.BaseSelector, clock: Timeline, outside: Outside
    ) -> None:
        """Wrap `real`, the loop's selector, which still polls the files."""
        self.clock = clock
        self._loop: Any = loop
        self._real = real
        self._outside = outside
        self._real_clocks = RealClocks(loop)
        self._reset_turns()

    def _reset_turns(self) -> None:
        """Restart the count of turns in which the clock moves by less than a tick."""
        self._turns = 0
        self._step = 0.0  # the last step of `_creep`
        self._cut_short = False  # whether a deadline has shortened a step

    def select(self, timeout: float | None = None) -> _Events:
        """Return the I/O that is ready. If there is none, and nothing else can run, move the clock and return [].

        If the clock cannot move, cancel the task that entered virtual time; without such a task raise DeadlockError.
        """
        events = self._real.select(0)
        if events or (timeout is not None and timeout <= 0):
            if events:
                self._reset_turns()
            elif not self._loop._ready and not self._loop._stopping:  # a timer with delay 0 is due
                self._turns += 1
                if self._turns >= _SPINNING:
                    return self._creep()
            return events
        deadline = self._next_deadline(timeout)
        target = self.clock._step(deadline)
        now = self.clock.time()
        if self._turns >= _SPINNING and target is not None and target < now + _TICK:
            return self._creep()
        waited = pause = 0.0  # counted and not measured, as tests may freeze the machine's clocks
        longest = _FIRST_SLICE
        while True:
            # Look first, then select: a job that finishes wakes the loop first, and looks idle afterwards.
            outlook = self._outside.look(self._real.get_map(), target, pause)
            remaining = (self.clock._patience if outlook.needs_patience(target) else outlook.grace) - waited
            pause = min(max(remaining, 0), longest)
            events = self._real.select(pause)
            if events or self._loop._ready:  # a signal handler may call the loop directly
                return events
            if remaining <= longest:
                break
            waited += pause
            longest = min(2 * longest, _SLICE)
        if target is None or outlook.busy or target > self.clock._end_of_time:
            self._report(self._reason(target, outlook, deadline))
        else:
            self.clock._move(target, deadline)
            if target < now + _TICK:
                self._turns += 1
            else:
                self._reset_turns()
            reason = None if self.clock.clocks else self._real_clocks.moved()
            if reason is not None:
                self._report(f"nothing else runs at {self.clock.time():.9g} s: {reason}")
            self._loop._clock_resolution = math.ulp(
                self.clock.time()
            )  # so that timers are due exactly at their deadline
        return []

    def _creep(self) -> _Events:
        """Advance the clock a little for a program that spins, as each of its waits is too short to move the clock.

        Start with the clock's smallest step, and quadruple it each time; in real time this time would have passed too.
        Stop at the next deadline. But once a deadline has shortened a step, pass deadlines within a tick from now: near
        0 a tick has more floats than a program can ever step through. Do not move while something outside is busy.
        """
        self._turns = 0
        now = self.clock.time()
        self._step = min(4 * self._step or max(math.ulp(now), _SHORTEST_STEP), _LONGEST_STEP)
        timers: list[asyncio.TimerHandle] = getattr(self._loop, "_scheduled", [])
        passed = now + _TICK if self._cut_short else now
        later = [float(handle.when()) for handle in timers if not handle.cancelled() and handle.when() > passed]
        target = self.clock._creep_target(min([now + self._step, *later]))
        outlook = self._outside.look(self._real.get_map(), target, 0.0)
        events = self._real.select(_SLICE if outlook.busy else outlook.grace)
        if events or outlook.busy or target is None:
            return events
        if target > self.clock._end_of_time:
            self._report(self._reason(target, outlook, target))
        else:
            self.clock._creep(target)
            self._cut_short = self._cut_short or target < now + self._step
            self._loop._clock_resolution = math.ulp(self.clock.time())
        return []

    def _next_deadline(self, timeout: float | None) -> float | None:
        """Return the loop's exact next deadline; None if there is none.

        Skip the expirations of buckets, and early wake-ups of a `Timer` on this loop: each stop costs an `io_grace`.
        """
        if timeout is None:
            return None
        now = self.clock.time()
        if not hasattr(self._loop, "_earliest") and not getattr(self._loop, "_scheduled", None):
            return max(now + timeout, math.nextafter(now, math.inf))  # an unknown kind of loop: when it would wake
        while (handle := self._earliest()) is not None:
            timer = timer_of(handle)
            if timer is None or not timer._arm_at_earliest():
                return float(handle.when()) if handle.when() < math.inf else None
        return None

    def _earliest(self) -> asyncio.TimerHandle | None:
        """Return the loop's earliest handle, by the loop's `_earliest()` if it is ours, else from its heap."""
        earliest = getattr(self._loop, "_earliest", None)
        if earliest is not None:
            handle: asyncio.TimerHandle | None = earliest()
            return handle
        heap: list[asyncio.TimerHandle] = self._loop._scheduled
        if heap and heap[0].cancelled():
            heap = [handle for handle in heap if not handle.cancelled()]
        return min(heap[:1] if heap is self._loop._scheduled else heap, default=None)

    def _reason(self, target: float | None, outlook: Outlook, deadline: float | None) -> str:
        now = f"{self.clock.time():.9g} s"
        if outlook.busy or (target is None and outlook.chances):
            awaited = ", ".join(outlook.busy or outlook.chances)
            return (
                f"nothing happened for {self.clock._patience:g} s of real time, the clock's patience, at {now} of "
                f"virtual time, while waiting for {awaited}"
            )
        if target is not None:
            return f"the clock has reached its limit: at {now} the next deadline is at {target:.9g} s"
        if deadline is not None:
            return (
                f"the clock stands still at {now}: a timer is due at {deadline:.9g} s, but autojump is off and no "
                "task is in `await clock.advance()`"
            )
        reason = (
            f"nothing can run any more at {now}: no callback is ready, no timer pending, nothing open to the outside"
        )
        signals = self._outside.signals.ignored()
        if signals:
            reason += f" (the handler of {', '.join(signals)} was set before virtual time began, and is ignored)"
        return reason

    def _report(self, reason: str) -> None:
        """Cancel the task that entered virtual time; it then raises DeadlockError. If this fails, raise that here."""
        task, reported = self.clock._task, self.clock._deadlock
        if reported is not None:
            self.clock._deadlock = None
            raise reported  # stuck again while it was cancelled; the first report has the cause
        error = DeadlockError(reason, all_waiting(self._loop, first=task))
        if task is None or task.done():
            raise error
        try:
            task.cancel("a deadlock in virtual time")
        except RecursionError:  # tasks that await each other in a circle
            raise error from None
        self.clock._deadlock = error

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Call the real selector's method, and have the loop's sockets counted again."""
        self._outside.sockets.changed = True
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Call the real selector's method, and have the loop's sockets counted again."""
        self._outside.sockets.changed = True
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Call the real selector's method."""
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Call the real selector's method."""
        return self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Call the real selector's method."""
        return self._real.get_key(fileobj)

    def close(self) -> None:
        """Call the real selector's method."""
        self._real.close()
