"""Python's clocks on virtual time: what programs read besides `loop.time()`, where `clocks=True` asks for it.

Two kinds of them:

* The wall clock (`time.time`, `datetime.now`, `date.today`, `time.localtime` and their like) is time-machine's to set:
  it changes the functions in C, so modules that bound them at import follow. It shows the same in every thread, as
  stamps of one moment should.
* `time.monotonic` measures how long something took. In the loop's thread that is the loop's time, to the bit. It is
  real in other threads, whose sleeps are, and for those of Python's own modules that wait really in any thread.

`time.perf_counter` stays real: it is for the cost of code, and test runners measure by it.
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
# Their waits are the system's, and they measure what is left of them; asyncio's is of other loops than the virtual one.
_WAIT_REALLY: Final = frozenset({
    "abeyant", "asyncio", "concurrent", "multiprocessing", "queue", "sched", "selectors", "socketserver", "subprocess",
    "threading",
})  # fmt: skip
_MANY: Final = 1000  # readings of one task at one moment
_STEP: Final = 1e-6  # seconds
_EXTRA: Final = {"clocks": ["time_machine"]}

_holder: PythonClocks | None = None  # the one between its `begin` and its `end`


class PythonClocks:
    """Python's clocks, by those of one loop, from `begin` to `end`."""

    def __init__(self, clock: Timeline) -> None:
        """Change nothing yet. Raises AbeyantError where time-machine is missing."""
        check_installed()
        self._clock = clock
        self._thread = 0
        self._reading: tuple[float, object] = (-1.0, None)  # at what time a task has read the clock, and
        self._reads = 0  # how often
        self._stride = _STEP
        self._travel: Any = None
        self._traveller: Any = None

    def begin(self) -> None:
        """Show the clock's time from now on. The wall clock goes on from what it shows now.

        Raises RuntimeError where another loop's time is shown, or where freezegun or a mock holds the clocks.
        """
        global _holder
        import time_machine

        if _holder is not None:
            raise RuntimeError(
                f"clocks=True: Python's clocks show the time of {_holder._clock!r} already, and can show that of one "
                "loop at a time"
            )
        _require_pythons_own()
        monotonic, monotonic_ns = _diverted()
        self._thread = threading.get_ident()
        entered, began = time.time_ns(), nanoseconds(self._clock.time())
        # Its own would stand still, or go on with the machine's; the number that it is made of is not looked at.
        self._travel = time_machine.travel(entered // _NANOSECONDS, tick=False)
        self._traveller = self._travel.start()
        self._traveller.time_ns = lambda: entered + nanoseconds(self._clock.time()) - began
        _holder = self
        monotonic.begin()
        monotonic_ns.begin()

    def end(self) -> None:
        """Let Python's clocks show what they showed before, and what time has passed there since."""
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
            travellers.remove(self._traveller)  # a test has begun one since, and ends it later

    def holds_here(self, caller: str) -> bool:
        """Return whether `time.monotonic` is the loop's for a module of this name, in this thread."""
        return threading.get_ident() == self._thread and caller.partition(".")[0] not in _WAIT_REALLY

    def time(self) -> float:
        """Return the loop's time.

        A task that reads it again and again while no time passes waits for it to move, as every real clock does:
        `while monotonic() <= deadline`, with the loop stopped at just that deadline. So it moves, by ever longer steps.
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
    """Raise AbeyantError, with what to install, where `clocks=True` cannot work."""
    lacking = missing(_EXTRA)
    if lacking:
        raise needs("virtual_time(clocks=True)", lacking)


def nanoseconds(seconds: float) -> int:
    """Return whole nanoseconds, exactly what the float says: it is not multiplied as a float."""
    whole = int(seconds)
    return whole * _NANOSECONDS + round((seconds - whole) * _NANOSECONDS)


def _require_pythons_own() -> None:
    for name in ("monotonic", "monotonic_ns", "time", "time_ns"):
        found = getattr(time, name)
        if getattr(found, "__module__", "") != "time":
            owner = str(getattr(found, "__module__", None) or type(found).__module__).partition(".")[0]
            raise RuntimeError(
                f"clocks=True: {owner} holds time.{name} at this moment: enter virtual time before it, or leave one "
                "of the two out"
            )


def _monotonic() -> float:
    holder = _holder
    if holder is not None and holder.holds_here(sys._getframe(1).f_globals.get("__name__", "")):
        return holder.time()
    return _diverted()[0].real()  # type: ignore[no-any-return]


def _monotonic_ns() -> int:
    holder = _holder
    if holder is not None and holder.holds_here(sys._getframe(1).f_globals.get("__name__", "")):
        return nanoseconds(holder.time())
    return _diverted()[1].real()  # type: ignore[no-any-return]


_made: list[Diverted] = []


def _diverted() -> list[Diverted]:
    """Made at the first use, and kept."""
    if not _made:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_end_in_child)
        _made.extend([Diverted(time.monotonic, _monotonic), Diverted(time.monotonic_ns, _monotonic_ns)])
    return _made


def _end_in_child() -> None:
    """A child of a fork has no part in the parent's loop, which does not run there."""
    if _holder is not None:
        _holder.end()
