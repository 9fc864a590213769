"""Replace Python's sources of time and randomness, from `begin` to `end`, by a run's clock and seed.

The functions themselves are changed, not the names in modules, so modules that have imported a function see the change.
`Diverted` changes C functions; methods are replaced in their class. In other threads the real functions still run.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from abeyant.aio.virtual.diverted import Diverted
from abeyant.lazy import missing, needs
from abeyant.simulation.chance import MAX_SEED
from abeyant.simulation.errors import SimulationError
from abeyant.simulation.ports import OWNER
from abeyant.simulation.refusals import Refusals

if TYPE_CHECKING:
    from abeyant.simulation.loop import SimulationLoop

EPOCH: Final = 1_893_456_000  # seconds: each run begins at 2030-01-01
_NANOSECONDS: Final = 10**9  # in a second
_EXTRA: Final = {"clocks": ["time_machine"]}
# Ids for `time.clock_gettime` of the clocks that are replaced by the loop's, which stands still while code runs.
_STEADY: Final = frozenset(
    getattr(time, name)
    for kind in ("MONOTONIC", "MONOTONIC_RAW", "BOOTTIME", "HIGHRES", "UPTIME", "UPTIME_RAW", "PROF",
                 "PROCESS_CPUTIME_ID", "THREAD_CPUTIME_ID")
    if hasattr(time, name := f"CLOCK_{kind}")
)  # fmt: skip
_NODE: Final = 0x02_00_00_00_00_01  # for uuid.uuid1: a locally administered hardware address

_loop: SimulationLoop | None = None
_refusals: Refusals | None = None  # of the run
_thread = 0


def _loop_of_thread() -> SimulationLoop | None:
    """Return the run's loop if called in its thread, else None."""
    return _loop if threading.get_ident() == _thread else None


def wall(loop: SimulationLoop) -> float:
    """Return the run's wall-clock time in seconds since 1970, plus the current process's clock offset."""
    life = OWNER.get()
    return EPOCH + loop.now + (0.0 if life is None else life.clock_ahead)


class Control:
    """Controls time and randomness in the loop's thread, for one run at a time."""

    def __init__(self, loop: SimulationLoop) -> None:
        """Change nothing yet. Raises AbeyantError if time-machine is not installed."""
        lacking = missing(_EXTRA)
        if lacking:
            raise needs("abeyant.simulation", lacking)
        self._loop = loop
        self._refusals = Refusals(loop)
        self._undo: list[Callable[[], object]] = []

    def begin(self) -> None:
        """Replace clocks and randomness. Raises SimulationError if another run is active or clocks are patched."""
        global _loop, _thread, _refusals
        if _loop is not None:
            raise SimulationError("a simulation is running in this process already: wait for its end")
        try:
            diverted = _diverted()
        except RuntimeError as error:
            raise SimulationError(f"a simulation needs Python's own clocks and random functions: {error}") from None
        self._take_random()
        self._take_wall_clock()
        _loop, _thread, _refusals = self._loop, threading.get_ident(), self._refusals
        for one in diverted:
            one.begin()
            self._undo.append(one.end)
        self._refusals.begin()
        self._undo.append(self._refusals.end)

    def end(self) -> None:
        """Restore everything. A second call does nothing."""
        global _loop
        while self._undo:
            self._undo.pop()()
        if _loop is self._loop:
            _loop = None

    def foreign_threads(self) -> str | None:
        """Return a message about threads started in C since `begin`; None if there are none."""
        return self._refusals.foreign_threads()

    def refused(self) -> SimulationError | None:
        """Return the first error of a refused call since `begin`, even if the program caught it; None without one."""
        return self._refusals.first

    def _take_random(self) -> None:
        chance = self._loop.chance
        self._undo.append(partial(random.setstate, random.getstate()))
        seeds = chance.stream("random")
        self._set(random.Random, "seed", _seed_by(seeds.below, random.Random.seed))
        random.seed(seeds.below(MAX_SEED))
        numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
        if numpy_random is not None:
            self._undo.append(partial(numpy_random.set_state, numpy_random.get_state()))
            numpy_random.seed(seeds.below(2**32))
        for name, value in (("_generate_time_safe", None), ("_UuidCreate", None), ("_node", _NODE)):
            self._set(uuid, name, value)
        self._set(uuid, "_last_timestamp", None)

    def _take_wall_clock(self) -> None:
        """Replace `datetime.now` and the like, with time-machine."""
        import time_machine

        travel = time_machine.travel(EPOCH, tick=False)
        traveller: Any = travel.start()
        traveller.time_ns = lambda: _nanoseconds(wall(self._loop))
        self._undo.append(travel.stop)
        # Replaced by name, so that functions bound to the machine's clock keep it: see abeyant.timer.clock.
        for name, read in (("clock_gettime", lambda now: now), ("clock_gettime_ns", _nanoseconds)):
            if hasattr(time, name):
                self._set(time, name, partial(_clock_by_id, getattr(time, name), read))

    def _set(self, owner: Any, name: str, value: object) -> None:
        self._undo.append(lambda: setattr(owner, name, before))
        before = getattr(owner, name, None)
        setattr(owner, name, value)


def _clock_by_id(real: Callable[[int], Any], read: Callable[[float], Any], clock: int) -> Any:
    loop = _loop_of_thread()
    return real(clock) if loop is None or clock not in _STEADY else read(loop.now)


def _seed_by(below: Callable[[int], int], seed: Callable[..., None]) -> Callable[..., None]:
    """Return a replacement for `Random.seed`: called without a seed, it draws one from the run."""

    def seed_by_run(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed(self, below(MAX_SEED) if a is None and _loop_of_thread() is not None else a, version)

    return seed_by_run


def _nanoseconds(seconds: float) -> int:
    whole = int(seconds)
    return whole * _NANOSECONDS + round((seconds - whole) * _NANOSECONDS)


def _clock(function: Callable[[], Any], read: Callable[[SimulationLoop], Any]) -> Diverted:
    """Return a replacement for a clock function: it reads the loop's clock in the run's thread, else the real clock."""

    def clock() -> Any:
        loop = _loop_of_thread()
        return diverted.real() if loop is None else read(loop)

    diverted = Diverted(function, clock)
    return diverted


def _urandom() -> Diverted:
    def urandom(size: int) -> bytes:
        loop = _loop_of_thread()
        if loop is None or size <= 0:
            return diverted.real(size)  # type: ignore[no-any-return]
        return loop.chance.stream("urandom").bits(8 * size).to_bytes(size, "big")

    diverted = Diverted(os.urandom, urandom)
    return diverted


def _sleep() -> Diverted:
    def sleep(seconds: float) -> None:
        if _loop_of_thread() is not None and _refusals is not None:
            _refusals.raise_for(f"time.sleep({seconds!r}) would block the loop for ever: await asyncio.sleep")
        diverted.real(seconds)

    diverted = Diverted(time.sleep, sleep)
    return diverted


_made: list[Diverted] = []


def _diverted() -> list[Diverted]:
    """Return the replaced C functions, made at the first call. Raises RuntimeError if clocks are patched already."""
    if not _made:
        made = [_clock(time.time, wall), _clock(time.time_ns, lambda loop: _nanoseconds(wall(loop)))]
        for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
            made.append(_clock(getattr(time, name), lambda loop: loop.now))
            made.append(_clock(getattr(time, f"{name}_ns"), lambda loop: _nanoseconds(loop.now)))
        _made.extend([*made, _urandom(), _sleep()])
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_end_in_child)
    return _made


def _end_in_child() -> None:
    """Restore the clocks in a forked child: the run continues in the parent."""
    global _loop
    if _loop is not None:
        _loop = None
        for one in _made:
            one.end()
