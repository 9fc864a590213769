"""Find what could still wake a loop from outside: executor jobs, subprocesses, sockets, threads, signals.

There are three kinds of causes:

* *Busy*: things that finish by themselves and then wake the loop: an executor job, a subprocess, a connection that a
  server on this loop has not accepted yet. The clock waits for them.
* *Chances*: things that may wake the loop: a socket whose other end is elsewhere, a thread. The clock waits `io_grace`
  of real time for them before it moves, but not for a thread that only the loop can wake.
* A socket with both ends on this loop wakes it only if the loop writes, and then at once. The clock gives the kernel a
  moment to deliver the data, unless the kernel reports that none is in flight.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Collection, Mapping
from selectors import SelectorKey
from typing import Any, NamedTuple

from abeyant.aio.virtual.connects import ATTEMPTS, Connects
from abeyant.aio.virtual.signals import Signals
from abeyant.aio.virtual.sockets import Sockets
from abeyant.aio.virtual.threads import Threads

_MOMENT = 0.001  # real seconds for data from one socket of this loop to another


class Outlook(NamedTuple):
    """The jobs, sockets, threads and so on outside the loop that could wake it now."""

    busy: list[str]
    chances: list[str]  # without signals if the clock can move by itself
    grace: float  # real seconds to wait for I/O before the clock moves

    def needs_patience(self, target: float | None) -> bool:
        """Return whether to wait for `patience`, not only for `grace`. `target` is the clock's next stop, or None."""
        return bool(self.busy or (target is None and self.chances))


class Outside:
    """A tracker of what could wake a loop from outside: executor jobs, processes, threads, sockets, signals."""

    def __init__(self, loop: asyncio.AbstractEventLoop, io_grace: float, ignored_threads: Collection[str]) -> None:
        """Start tracking `loop`, when its virtual time begins. Use from the loop's thread only."""
        self._loop: Any = loop
        self._io_grace = io_grace
        self._jobs: dict[asyncio.Future[Any], str] = {}
        self._processes: list[asyncio.SubprocessTransport] = []
        self._threads = Threads(io_grace, ignored_threads)
        self._connects = Connects(loop)
        self.sockets = Sockets(loop)
        self.signals = Signals(loop)

    def look(self, registered: Mapping[Any, SelectorKey], target: float | None, waited: float) -> Outlook:
        """Return what could wake the loop. `registered` is its selector's map, `target` the clock's next stop or None.

        `waited` are the real seconds slept since the last call.
        """
        self._processes = [process for process in self._processes if _runs(process)]
        busy = [*self._jobs.values(), *(f"subprocess {process.get_pid()}" for process in self._processes)]
        threads = self._threads.look(waited)
        sockets = self.sockets.look(registered)
        connects = self._connects.look(sockets.addresses, waited)
        open_ends = [*sockets.elsewhere, *threads.others]
        signals = self.signals.look() if target is None else []
        grace = self._io_grace if sockets.elsewhere or threads.active else _MOMENT if self.sockets.in_flight() else 0.0
        if connects.active or self.sockets.retries(waited):
            grace = max(grace, ATTEMPTS)
        return Outlook(busy + threads.at_work + connects.here, [*open_ends, *sockets.listening, *signals], grace)

    def wrappers(self) -> dict[str, Callable[..., Any]]:
        """Return, by name, wrappers of the loop methods that start connections, jobs and processes, to record these."""
        loop = self._loop
        return {
            "sock_connect": self._connects.watch(),
            "run_in_executor": self._watch_job(loop.run_in_executor),
            "subprocess_exec": self._watch_process(loop.subprocess_exec),
            "subprocess_shell": self._watch_process(loop.subprocess_shell),
        }

    def _watch_job(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_in_executor(executor: Any, function: Callable[..., Any], *args: Any) -> Any:
            job = run(executor, function, *args)
            self._jobs[job] = f"the executor job {_job_name(function, args)}"
            job.add_done_callback(self._jobs.pop)
            return job

        return run_in_executor

    def _watch_process(self, start: Callable[..., Any]) -> Callable[..., Any]:
        async def start_process(*args: Any, **options: Any) -> Any:
            transport, protocol = await start(*args, **options)
            self._processes.append(transport)
            return transport, protocol

        return start_process


def _runs(process: asyncio.SubprocessTransport) -> bool:
    return process.get_returncode() is None and not process.is_closing()


def _job_name(function: object, args: tuple[object, ...]) -> str:
    """Return the name of a job's function; for `asyncio.to_thread(f)`, a job `partial(context.run, f)`, that of `f`."""
    if isinstance(function, functools.partial):
        return _job_name(function.func, (*function.args, *args))
    if getattr(function, "__name__", "") == "run" and args and callable(args[0]):
        function = args[0]
    return str(getattr(function, "__qualname__", function))
