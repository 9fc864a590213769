"""Make Python's clocks show virtual time, for `clocks=True`.

There are two kinds of clocks:

* The wall clock (`time.time`, `datetime.now`, `date.today`, `time.localtime` and the like) is set with time-machine,
  which patches the functions in C. So it changes even for modules that bound the functions at import. It is the same in
  all threads, so that timestamps agree.
* `time.monotonic` is exactly the loop's time in the loop's thread. It stays real in other threads, whose sleeps are
  real, and for modules of the standard library that wait in real time in any thread.

`time.perf_counter` stays real, as it measures the cost of code, and test runners use it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from typing import Any, Final

from abeyant.aio.virtual.diverted import Diverted
from abeyant.aio.virtual.timeline import Timeline
from abeyant.lazy import missing, needs

_NANOSECONDS: Final = 10**9  # in a second
# Modules that wait in real time and compute the rest of a time-out. asyncio is for loops other than the virtual one.
_WAIT_REALLY: Final = frozenset({
    "abeyant", "asyncio", "concurrent", "multiprocessing", "queue", "sched", "selectors", "socketserver", "subprocess",
    "threading",
})  # fmt: skip
_MANY: Final = 1000  # reads by one task at the same time
_STEP: Final = 1e-6  # seconds
_EXTRA: Final = {"clocks": ["time_machine"]}

_holder: PythonClocks | None = None  # the active one, between `begin` and `end`


class PythonClocks:
    """A switch that makes Python's clocks show a loop's time, from `begin` to `end`."""

    def __init__(self, clock: Timeline) -> None:
        """Prepare without changing the clocks. Raises AbeyantError if time-machine is missing."""
        check_installed()
        self._clock = clock
        self._thread = 0
        self._reading: tuple[float, object] = (-1.0, None)  # the last read: time and task
        self._reads = 0  # number of reads at that time by that task
        self._stride = _STEP
        self._travel: Any = None
        self._traveller: Any = None

    def begin(self) -> None:
        """Show the virtual clock's time from now on. The wall clock continues from its current time.

        Raises RuntimeError if the clocks already show another loop's time, or if freezegun or a mock patches them.
        """
        global _holder
        import time_machine

        if _holder is not None:
            raise RuntimeError(
                f"clocks=True: Python's clocks already show the time of {_holder._clock!r}; only one loop at a time "
                "can have them"
            )
        _require_unpatched()
        monotonic, monotonic_ns = _diverted()
        self._thread = threading.get_ident()
        wall_start, clock_start = time.time_ns(), nanoseconds(self._clock.time())
        # Replace its own clock, which would stand still, or run in real time. Its start time does not matter then.
        self._travel = time_machine.travel(wall_start // _NANOSECONDS, tick=False)
        self._traveller = self._travel.start()
        self._traveller.time_ns = lambda: wall_start + nanoseconds(self._clock.time()) - clock_start
        _holder = self
        monotonic.begin()
        monotonic_ns.begin()

    def end(self) -> None:
        """Make Python's clocks show real time again."""
        global _holder
        if _holder is not self:
            return
        import time_machine

        for diverted in _diverted():
            diverted.end()
        _holder = None
        travellers = time_machine.traveller_stack
        if travellers[-1] is self._traveller:
            self._travel.stop()
        else:
            travellers.remove(self._traveller)  # a test has started another one since, and ends it later

    def applies_to(self, caller: str) -> bool:
        """Return whether `time.monotonic` is virtual for a module with this name, in this thread."""
        return threading.get_ident() == self._thread and caller.partition(".")[0] not in _WAIT_REALLY

    def time(self) -> float:
        """Return the loop's time, and move it if one task reads it very often while no time passes.

        Such a task waits for the clock to move, as real clocks do: `while monotonic() <= deadline`, with the loop
        stopped at that deadline. So move the time, by ever longer steps.
        """
        task = asyncio.current_task(self._clock._loop)
        if (self._clock.time(), task) != self._reading:
            self._reading, self._reads, self._stride = (self._clock.time(), task), 0, _STEP
        self._reads += 1
        if self._reads > _MANY:
            stride = self._stride
            self._clock._time += stride
            self._reading, self._reads, self._stride = (self._clock.time(), task), 0, 2 * stride
        return self._clock.time()


def check_installed() -> None:
    """Raise AbeyantError if time-machine, which `clocks=True` needs, is missing. The message says how to install it."""
    lacking = missing(_EXTRA)
    if lacking:
        raise needs("virtual_time(clocks=True)", lacking)


def nanoseconds(seconds: float) -> int:
    """Convert seconds to nanoseconds, without the error of multiplying a float by 1e9."""
    whole_seconds = int(seconds)
    return whole_seconds * _NANOSECONDS + round((seconds - whole_seconds) * _NANOSECONDS)


def _require_unpatched() -> None:
    for name in ("monotonic", "monotonic_ns", "time", "time_ns"):
        function = getattr(time, name)
        if getattr(function, "__module__", "") != "time":
            owner = str(getattr(function, "__module__", None) or type(function).__module__).partition(".")[0]
            raise RuntimeError(
                f"clocks=True: {owner} patches time.{name} at this moment: enter virtual time before it does, or "
                "use only one of the two"
            )


def _monotonic() -> float:
    holder = _holder
    if holder is not None and holder.applies_to(sys._getframe(1).f_globals.get("__name__", "")):
        return holder.time()
    return _diverted()[0].real()  # type: ignore[no-any-return]


def _monotonic_ns() -> int:
    holder = _holder
    if holder is not None and holder.applies_to(sys._getframe(1).f_globals.get("__name__", "")):
        return nanoseconds(holder.time())
    return _diverted()[1].real()  # type: ignore[no-any-return]


_made: list[Diverted] = []


def _diverted() -> list[Diverted]:
    """Return the redirections of `monotonic` and `monotonic_ns`, which the first call creates and nothing frees."""
    if not _made:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_end_in_child)
        _made.extend([Diverted(time.monotonic, _monotonic), Diverted(time.monotonic_ns, _monotonic_ns)])
    return _made


def _end_in_child() -> None:
    """Make the clocks show real time again in a forked child, where the parent's loop does not run."""
    if _holder is not None:
        _holder.end()
