"""Run an asyncio program in a simulation with one seed, or with many."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from abeyant.simulation.chance import Chance
from abeyant.simulation.control import Control
from abeyant.simulation.errors import SimulationError
from abeyant.simulation.hashes import hashes_are_fixed
from abeyant.simulation.loop import SimulationLoop
from abeyant.simulation.network import Latency
from abeyant.simulation.trace import Event

Main = Callable[[], Coroutine[Any, Any, Any]]

_LIMIT = 86_400.0  # seconds of virtual time
_CLOSINGS = 100  # attempts to close a coroutine that ignores GeneratorExit


@dataclass(frozen=True)
class Run:
    """The result of a run."""

    seed: int
    hash: str
    """Hash of the trace of all events: equal for equal runs (S1)."""
    value: Any
    """The program's return value; None if it raised."""
    error: BaseException | None
    """The exception that the program raised; None if it returned."""
    seconds: float
    """Duration in virtual time."""
    events: int
    """Number of events in the trace."""
    drawn: Mapping[str, int]
    """Number of draws from each random stream."""
    trace: tuple[Event, ...] | None
    """The events of the trace; None unless `keep_trace`."""


def run(
    main: Main,
    *,
    seed: int,
    tape: Mapping[str, int] | None = None,
    latency: Latency | None = None,
    limit: float = _LIMIT,
    keep_trace: bool = False,
    any_hashes: bool = False,
) -> Run:
    """Run the coroutine function `main` with a seed, on a new loop, and return the result.

    `tape` is for shrinking: it maps the name of a random stream to a number of draws after which the stream returns
    only 0 (default: never). `latency` is that of the network. `limit` is in seconds of virtual time; then the run fails
    with a DeadlockError that lists the waiting tasks. `any_hashes`: run even if the order of sets of strings differs
    between processes. An error of the program is in the result. Raises SimulationError for a bad seed, and for what a
    simulation cannot control: hashes that are not fixed, a thread, a real socket, `time.sleep`, a client in C.

    Examples:
        >>> async def main():
        ...     await asyncio.sleep(3600.0)
        ...     return "done"
        >>> run(main, seed=1, any_hashes=True).value
        'done'
    """
    if not any_hashes and not hashes_are_fixed():
        raise SimulationError(
            "sets of strings are ordered differently in each process: call simulation.fix_hashes() first, which runs "
            "the program again with PYTHONHASHSEED=0"
        )
    if not callable(main):
        raise SimulationError(
            f"each run calls a coroutine function anew: write run(main, ...), not run({_shown(main)}, ...)"
        )
    if not limit > 0:
        raise SimulationError(f"limit must be more than 0 seconds, not {limit!r}")
    if asyncio._get_running_loop() is not None:
        raise SimulationError("a simulation cannot start inside a running event loop: call run() outside of it")
    with _garbage_collected_after():
        result, foreign, refused = _attempt(
            main, SimulationLoop(Chance(seed, tape), latency=latency, limit=limit, keep_trace=keep_trace)
        )
    if foreign is not None:
        raise SimulationError(foreign)
    if isinstance(result.error, SimulationError):
        raise result.error
    if refused is not None:
        raise refused
    return result


def _attempt(main: Main, loop: SimulationLoop) -> tuple[Run, str | None, SimulationError | None]:
    """Run `main` on a loop; return the result, a message about uncontrolled threads in C, and the first refusal."""
    control = Control(loop)
    value: Any = None
    failure: BaseException | None = None
    try:
        control.begin()
        asyncio.set_event_loop(loop)
        try:
            program = main()
            if not asyncio.iscoroutine(program):
                raise SimulationError(
                    f"a simulation runs an `async def` function, but {_shown(main)} is none: it returned {program!r}"
                )
            value = loop.run_until_complete(program)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  the program's error is in the result
            failure = error
        foreign = control.foreign_threads()
        loop.trace.add(loop.now, "end")
        result = Run(
            loop.chance.seed, loop.trace.hash(), value, failure, loop.now, loop.trace.count, loop.chance.drawn(),
            None if loop.trace.events is None else tuple(loop.trace.events),
        )  # fmt: skip
        _dispose(loop)
    finally:
        control.end()
        asyncio.set_event_loop(None)
        loop.close()
    return result, foreign, control.refused()


@contextlib.contextmanager
def _garbage_collected_after() -> Iterator[None]:
    """Disable garbage collection in the block, and afterwards collect only the garbage of the block.

    Automatic collections would happen at different moments in another process.
    """
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    if not frozen:
        gc.freeze()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # connections that are open at the end
            yield
            gc.collect()
    finally:
        if not frozen:
            gc.unfreeze()
        if enabled:
            gc.enable()


class RunOptions(TypedDict, total=False):
    """The options that `search` passes to `run`."""

    tape: Mapping[str, int] | None
    latency: Latency | None
    limit: float
    keep_trace: bool
    any_hashes: bool


def search(main: Main, seeds: Iterable[int], **options: Unpack[RunOptions]) -> int:
    """Run `main` with each seed; return the number of runs. Raises the first error, with a note that names the seed.

    `options` are those of `run`. For Kafka programs, `abeyant.broker.simulation.find_failure` returns the failure.
    """
    count = 0
    for seed in seeds:
        error: BaseException | None
        try:
            error = run(main, seed=seed, **options).error
        except SimulationError as refusal:
            error = refusal
        if isinstance(error, SystemExit):  # raised unchanged, it would end the search without a message
            exited = SimulationError(f"the program called sys.exit({error.code!r}): raise an error, or return")
            exited.__cause__ = error  # its traceback shows the call
            error = exited
        if error is not None:
            error.add_note(f"seed {seed}: simulation.run(..., seed={seed}) repeats it")
            raise error
        count += 1
    return count


def _shown(main: object) -> str:
    return f"{getattr(main, '__name__', repr(main))}{'()' if asyncio.iscoroutine(main) else ''}"


def current() -> SimulationLoop:
    """Return the loop of the running simulation. Raises SimulationError outside of one."""
    loop = asyncio._get_running_loop()
    if not isinstance(loop, SimulationLoop):
        raise SimulationError("no simulation is running: start one with simulation.run(main, seed=0)")
    return loop


def _dispose(loop: SimulationLoop) -> None:
    """Close unfinished coroutines without warnings: a program may be unfinished when the run ends."""
    loop.set_exception_handler(lambda *_: None)
    logger, level = logging.getLogger("asyncio"), logging.getLogger("asyncio").level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that were never awaited
            loop._ready.clear()
            for task in asyncio.all_tasks(loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
            loop._ready.clear()  # callbacks scheduled by `finally` clauses
            loop.processes.clear()
    finally:
        logger.setLevel(level)


def _close(coroutine: Any) -> None:
    for _ in range(_CLOSINGS):
        with contextlib.suppress(BaseException):
            coroutine.close()
            return
