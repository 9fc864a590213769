"""The selector of virtual time: in place of sleeping, it moves the clock.

A loop calls `select(timeout)` once a turn, with the time until its next timer; nothing of the loop can run while it is
in there. So this is the one place that knows that nothing else can run, and the one place where the clock moves.
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
_SPINNING = 2_000  # turns without I/O, none of which moved the clock by a tick
_TICK = 1e-9  # seconds: real clocks tell no shorter times apart
_SHORTEST_STEP = 2.0**-60  # seconds: at 0 a float would have far shorter ones
_LONGEST_STEP = 0.02  # seconds for so many turns: less than they take in real time
_FIRST_SLICE = 0.001  # real seconds, doubled up to
_SLICE = 0.05  # real seconds: how long at most until we look again whether what we wait for is still there


class VirtualSelector(selectors.BaseSelector):
    """A loop's own selector, which moves the clock in place of sleeping."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, real: selectors.BaseSelector, clock: Timeline, outside: Outside
    ) -> None:
        """`real` keeps the registrations and polls; only its waiting is replaced."""
        self.clock = clock
        self._loop: Any = loop
        self._real = real
        self._outside = outside
        self._real_clocks = RealClocks(loop)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Restart the count of turns in which less than a tick passes."""
        self._turns = 0
        self._step = 0.0  # by which the clock last moved in the middle of such turns
        self._cut_short = False  # whether a deadline kept it from moving so far

    def select(self, timeout: float | None = None) -> _Events:
        """What I/O is ready; when there is none, and nothing else can run, the clock moves and it is none.

        Raises DeadlockError where the clock cannot move and no task is left to be told.
        """
        events = self._real.select(0)
        if events or (timeout is not None and timeout <= 0):
            if events:
                self._begin_anew()
            elif not self._loop._ready and not self._loop._stopping:  # a timer is due that was set for no later
                self._turns += 1
                if self._turns >= _SPINNING:
                    return self._creep()
            return events
        deadline = self._next_deadline(timeout)
        target = self.clock._step(deadline)
        now = self.clock.time()
        if self._turns >= _SPINNING and target is not None and target < now + _TICK:
            return self._creep()
        waited = pause = 0.0  # counted, not measured: tests freeze the machine's clocks, too
        longest = _FIRST_SLICE
        while True:
            # In this order: what ends out there wakes the loop first, and looks idle afterwards.
            outlook = self._outside.look(self._real.get_map(), target, pause)
            left = (self.clock._patience if outlook.needs_patience(target) else outlook.grace) - waited
            pause = min(max(left, 0), longest)
            events = self._real.select(pause)
            if events or self._loop._ready:  # the latter where a signal's handler called the loop as if from a task
                return events
            if left <= longest:
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
                self._begin_anew()
            reason = None if self.clock._clocks else self._real_clocks.moved()
            if reason is not None:
                self._report(f"nothing else goes on at {self.clock.time():.9g} s: {reason}")
            self._loop._clock_resolution = math.ulp(self.clock.time())  # due is what is due, and not a bit more
        return []

    def _creep(self) -> _Events:
        """Let a little time pass for a program that spins: each of its waits is too short to move the clock.

        The clock's smallest step first, and four times as much each time: in real time it would have passed, too. Not
        past a deadline, but for those within a tick once one of them has cut a step short: near 0 a float can tell
        apart more of them than a program ever gets through. And not while something outside goes on.
        """
        self._turns = 0
        now = self.clock.time()
        self._step = min(4 * self._step or max(math.ulp(now), _SHORTEST_STEP), _LONGEST_STEP)
        timers: list[asyncio.TimerHandle] = getattr(self._loop, "_scheduled", [])
        passed = now + _TICK if self._cut_short else now
        later = [float(handle.when()) for handle in timers if not handle.cancelled() and handle.when() > passed]
        target = self.clock._creeps_to(min([now + self._step, *later]))
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
        """Return when the loop has something to do next, as exactly as it can say; None for never.

        Neither a bucket of the wheel on the way there, nor what a `Timer` on this loop has armed before: each stop
        would cost an `io_grace`.
        """
        if timeout is None:
            return None
        now = self.clock.time()
        if not hasattr(self._loop, "_earliest") and not getattr(self._loop, "_scheduled", None):
            return max(now + timeout, math.nextafter(now, math.inf))  # of an unknown loop: what it would sleep
        while (handle := self._earliest()) is not None:
            timer = timer_of(handle)
            if timer is None or not timer._arm_at_earliest():
                return float(handle.when()) if handle.when() < math.inf else None
        return None

    def _earliest(self) -> asyncio.TimerHandle | None:
        """Return the loop's earliest handle: from its `_earliest()`, which ours has, else from its heap."""
        earliest = getattr(self._loop, "_earliest", None)
        if earliest is not None:
            ours: asyncio.TimerHandle | None = earliest()
            return ours
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
                f"virtual time: it waits for {awaited}"
            )
        if target is not None:
            return f"the clock has come to its limit: at {now} what goes on next is at {target:.9g} s"
        if deadline is not None:
            return (
                f"the clock stands still at {now}: a timer is due at {deadline:.9g} s, but autojump is off and no "
                "task is in `await clock.advance()`"
            )
        reason = (
            f"nothing can run any more at {now}: no callback is ready, no timer pending, nothing open to the outside"
        )
        others = self._outside.signals.not_waited_for()
        if others:
            reason += f" (the handler of {', '.join(others)} stood before virtual time began, and is not waited for)"
        return reason

    def _report(self, reason: str) -> None:
        """Tell the task that entered, by cancelling it; where there is none, or it would not hear, stop the loop."""
        task, told = self.clock._task, self.clock._deadlock
        if told is not None:
            self.clock._deadlock = None
            raise told  # stuck again, on its way out: how it came to that is in the first report
        error = DeadlockError(reason, all_waiting(self._loop, first=task))
        if task is None or task.done():
            raise error
        try:
            task.cancel("a deadlock in virtual time")
        except RecursionError:  # it is one of a circle of tasks that wait for one another
            raise error from None
        self.clock._deadlock = error

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Pass on to the real selector."""
        self._outside.sockets.changed = True
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Pass on to the real selector."""
        self._outside.sockets.changed = True
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Pass on to the real selector."""
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Pass on to the real selector."""
        return self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Pass on to the real selector."""
        return self._real.get_key(fileobj)

    def close(self) -> None:
        """Pass on to the real selector."""
        self._real.close()
