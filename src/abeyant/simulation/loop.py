"""The event loop of a simulation: an asyncio loop on the timing wheel, with virtual time and a network in memory.

The loop never waits: if nothing is ready, its clock jumps to the next deadline. Hashes of tasks and futures are drawn
from the seed, not computed from addresses, so that `asyncio.wait`, which uses sets, behaves the same in each run.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import selectors
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import Any, Final, Never

from abeyant.aio.loop import EventLoop
from abeyant.aio.timer import timer_of
from abeyant.aio.virtual.deadlock import DeadlockError, WaitingTask, all_waiting
from abeyant.simulation.chance import Chance
from abeyant.simulation.errors import SimulationError, SpinningError
from abeyant.simulation.network import Latency, Network
from abeyant.simulation.ports import OWNER, Life
from abeyant.simulation.process import Process
from abeyant.simulation.serving import Serving
from abeyant.simulation.sockets import ListeningSocket
from abeyant.simulation.trace import Trace

_FREE_TURNS: Final = 1_000  # turns since the loop was last idle; each further one takes time, as on a real machine
_IDLE: Final = 1e-3  # seconds until the next deadline that count as idle
_SHORTEST_TURN: Final = 1e-6  # seconds
_LONGEST_TURN: Final = 1e-4
_MOST_TURNS: Final = 100_000  # turns without any wait: then the program spins
_HASH_BITS: Final = 48


class CountedFuture(asyncio.Future[Any]):
    """A future whose hash is drawn from the seed, not computed from its address."""

    def __init__(self, *, loop: SimulationLoop) -> None:
        self._number = loop.next_hash()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class CountedTask(asyncio.Task[Any]):
    """A task whose hash is drawn from the seed, not computed from its address."""

    def __init__(self, coro: Any, *, loop: SimulationLoop, **options: Any) -> None:
        self._number = loop.next_hash()
        options["name"] = options.get("name") or f"Task-{loop.next_number()}"  # asyncio numbers tasks across runs
        context = options.get("context")
        self._owner = OWNER.get() if context is None else context.get(OWNER)
        super().__init__(coro, loop=loop, **options)

    def is_dead(self) -> bool:
        """Return whether the task's process was killed, so that it never runs again."""
        return self._owner is not None and self._owner.dead

    def is_of(self, life: Life) -> bool:
        """Return whether the task belongs to `life`, one start of a process."""
        return self._owner is life

    def close_unstarted(self) -> None:
        """Close the coroutine of a task that has not begun, so that Python does not warn that it was never awaited."""
        coroutine = self.get_coro()
        if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()

    def __hash__(self) -> int:
        return self._number


class Wait(selectors.BaseSelector):
    """A selector that advances the virtual clock where other selectors wait for sockets."""

    loop: SimulationLoop

    def __init__(self) -> None:
        self._turns = 0  # turns since the last wait of any length
        self._busy = 0  # turns since the loop was idle
        self._step = _SHORTEST_TURN

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return at once; if nothing is ready, advance the clock to the next deadline."""
        loop = self.loop
        if timeout is not None and timeout <= 0:
            self._turns += 1
            self._busy += 1
            if self._busy > _FREE_TURNS:
                self._take_time()
            return []
        self._turns = 0
        deadline = self._next_deadline()
        if deadline is None:
            raise DeadlockError(f"nothing can run any more at {loop.now:.9g} s", loop.waiting())
        if deadline > loop.limit:
            reason = f"the run has reached its limit of {loop.limit:g} s of virtual time"
            raise DeadlockError(reason, loop.waiting())
        if deadline - loop.now >= _IDLE:
            self._busy, self._step = 0, _SHORTEST_TURN
        loop.now = max(loop.now, deadline)
        return []

    def _take_time(self) -> None:
        """Advance the clock for a busy turn, in steps that double from 1 to 100 us, but not past the next deadline.

        Raises SpinningError after 100,000 turns without a wait.
        """
        loop = self.loop
        if self._turns > _MOST_TURNS:
            busy = ", ".join(dict.fromkeys(name for name in map(_task_name, loop._ready) if name)) or "callbacks"
            raise SpinningError(f"{busy} spins: {self._turns} turns of the loop without a wait, at {loop.now:.9g} s")
        deadline = self._next_deadline()
        loop.now = min(loop.now + self._step, max(deadline, loop.now) if deadline is not None else math.inf)
        self._step = min(2 * self._step, _LONGEST_TURN)

    def _next_deadline(self) -> float | None:
        loop: Any = self.loop
        while (handle := loop._earliest()) is not None:
            timer = timer_of(handle)
            if timer is None or not timer._arm_at_earliest():
                return float(handle.when()) if handle.when() < math.inf else None
        return None

    def _refuse(self, *_: Any) -> Never:
        raise SimulationError("a simulation cannot watch real sockets or files: use asyncio's streams")

    register = unregister = modify = get_key = _refuse  # type: ignore[assignment]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return an empty mapping: no files are registered."""
        return {}

    def close(self) -> None:
        """Do nothing: there are no files to close."""


def _task_name(handle: asyncio.Handle) -> str | None:
    task = getattr(getattr(handle, "_callback", None), "__self__", None)
    return task.get_name() if isinstance(task, asyncio.Task) else None


class SimulationLoop(Serving, EventLoop):  # type: ignore[misc]
    """The event loop of one run. `run` makes it; programs get it by `current`."""

    _ready: Any

    def __init__(
        self, chance: Chance, *, latency: Latency | None = None, limit: float = math.inf, keep_trace: bool = False
    ) -> None:
        """Not for users: `run` makes it. `limit`: seconds of virtual time; `keep_trace`: keep the trace's events."""
        wait = Wait()
        super(EventLoop, self).__init__(wait)  # not EventLoop's own, which warns if not compiled
        wait.loop = self
        self.now = 0.0
        self.limit = limit
        self.chance = chance
        self.trace = Trace(keep_trace)
        self.processes: list[Process] = []
        self.failures: list[tuple[Process, BaseException]] = []
        """(process, error) for each process that ended with an error."""
        self._hashes = chance.stream("hashes")
        self._numbers = itertools.count(1)
        self._context = Context()
        self._use_clock(self._read)
        self.network = Network(self, latency or Latency())
        self.set_task_factory(_task)

    def _read(self) -> float:
        return self.now

    def next_hash(self) -> int:
        """Return the hash of the next task or future."""
        return self._hashes.bits(_HASH_BITS)

    def next_number(self) -> int:
        """Return the number that names the next unnamed task, from 1."""
        return next(self._numbers)

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return CountedFuture(loop=self)

    # -- processes

    def process(self, name: str, main: Callable[..., Any], *args: Any) -> Process:
        """Return a process that runs `main(*args)`, a coroutine function; it is not started yet."""
        made = Process(self, name, main, args)
        self.processes.append(made)
        return made

    def end_life(self, life: Life) -> None:
        """Discard the callbacks and timers of a process, so that none of its code runs, and end its connections.

        O(pending).
        """
        if life.dead:
            return
        life.dead = True
        for task in asyncio.all_tasks(self):
            if isinstance(task, CountedTask) and task.is_of(life):
                task.close_unstarted()
        kept = [handle for handle in self._ready if not _is_of(handle, life)]
        self._ready.clear()
        self._ready.extend(kept)
        schedule: Any = self
        for handle in schedule._scheduled:
            if _is_of(handle, life):
                handle.cancel()
        self.network.end_life(life)
        # Discard further calls of dead processes. Until the first kill, no call is checked.
        vars(self).setdefault("call_soon", self._call_soon_of_living)
        vars(self).setdefault("call_at", self._call_at_of_living)

    def waiting(self) -> list[WaitingTask]:
        """Return what each unfinished task waits for, except tasks of killed processes."""
        return all_waiting(self, tasks=[task for task in asyncio.all_tasks(self) if not task.is_dead()])  # type: ignore[attr-defined]

    def process_failed(self, process: Process, error: BaseException | None) -> None:
        """Record that a process ended with an error."""
        if error is not None:
            self.failures.append((process, error))
            self.trace.add(self.now, f"{process.name} failed: {type(error).__name__}")

    def _call_soon_of_living(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if _is_dead(context):
            return _cancelled(self, callback, args)
        return EventLoop.call_soon(self, callback, *args, context=context)

    def _call_at_of_living(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = EventLoop.call_at(self, when, callback, *args, context=context)
        if _is_dead(context):
            handle.cancel()
        return handle

    # -- the system calls of asyncio's loop

    def _make_self_pipe(self) -> None:
        pass

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Call `func(*args)` in the loop's thread, 0.1 to 5 ms later, so that the simulation controls it."""
        future = self.create_future()
        wait = self.chance.stream("executor").between(0.0001, 0.005)
        self.call_at(self.now + wait, _fulfil, future, func, args)
        return future

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Accept a handler and never call it: a simulation has no signals. Kill a process instead."""

    def remove_signal_handler(self, sig: int) -> bool:
        """Return False: no handler was set, as `add_signal_handler` sets none."""
        return False

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        """Call back when a client connects to the listening socket `fd`. Raises SimulationError for any other `fd`."""
        if not isinstance(fd, ListeningSocket):
            raise SimulationError(f"a simulation cannot watch {fd!r}: use asyncio's streams")
        fd.set_reader(lambda: callback(*args))

    def remove_reader(self, fd: Any) -> bool:
        """Stop calling the callback that `add_reader` set for `fd`. Return True."""
        if isinstance(fd, ListeningSocket):
            fd.set_reader(None)
        return True

    def close(self) -> None:
        """Close the loop. Tasks of killed processes are released unfinished."""
        super().close()


def _task(loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
    return CountedTask(coro, loop=loop, **options)


def _fulfil(future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  raised where the future is awaited
        future.set_exception(error)
    else:
        future.set_result(result)


def _is_of(handle: Any, life: Life) -> bool:
    context = handle._context
    return context is not None and context.get(OWNER) is life


def _is_dead(context: Context | None) -> bool:
    owner = OWNER.get() if context is None else context.get(OWNER)
    return owner is not None and owner.dead


def _cancelled(loop: asyncio.AbstractEventLoop, callback: Any, args: tuple[Any, ...]) -> asyncio.Handle:
    handle = asyncio.Handle(callback, args, loop)
    handle.cancel()
    return handle
