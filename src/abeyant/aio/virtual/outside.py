"""What could still wake a loop from outside: executor jobs, subprocesses, sockets, threads, signals.

Three kinds of it, and what the clock does about each:

* *Busy* is what ends by itself and then wakes the loop: an executor job, a subprocess, a connection that a server on
  this loop has not taken yet. The clock waits for it.
* A *chance* is what may wake the loop or may not: a socket whose other end is elsewhere, a thread. It is given
  `io_grace` of real silence before the clock moves; a thread that only the loop can wake is given none.
* A socket whose both ends are on this loop wakes it only if the loop does something, and then at once. All it is
  given is a moment for the kernel to carry over what was written, unless the kernel says that nothing is under way.
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

_MOMENT = 0.001  # real seconds, from one socket of this loop to another


class Outlook(NamedTuple):
    """What could wake the loop now."""

    busy: list[str]
    chances: list[str]  # complete only where the clock has nowhere to go by itself
    grace: float  # real seconds of silence to wait for before the clock moves

    def needs_patience(self, target: float | None) -> bool:
        """Return whether only the outside can go on, the clock's next stop being `target`."""
        return bool(self.busy or (target is None and self.chances))


class Outside:
    """Counts what one loop sends out, and looks around."""

    def __init__(self, loop: asyncio.AbstractEventLoop, io_grace: float, ignored_threads: Collection[str]) -> None:
        """Everything here belongs to the thread of `loop`, in which virtual time begins now."""
        self._loop: Any = loop
        self._io_grace = io_grace
        self._jobs: dict[asyncio.Future[Any], str] = {}
        self._processes: list[asyncio.SubprocessTransport] = []
        self._threads = Threads(io_grace, ignored_threads)
        self._connects = Connects(loop)
        self.sockets = Sockets(loop)
        self.signals = Signals(loop)

    def look(self, registered: Mapping[Any, SelectorKey], target: float | None, waited: float) -> Outlook:
        """What could wake the loop now; `registered` is its selector's map, `target` the clock's next stop.

        `waited` is how many real seconds have been slept since the last look.
        """
        self._processes = [process for process in self._processes if _runs(process)]
        busy = [*self._jobs.values(), *(f"subprocess {process.get_pid()}" for process in self._processes)]
        threads = self._threads.look(waited)
        sockets = self.sockets.look(registered)
        connects = self._connects.look(sockets.places, waited)
        open_ends = [*sockets.elsewhere, *threads.others]
        signals = self.signals.look() if target is None else []
        grace = self._io_grace if sockets.elsewhere or threads.active else _MOMENT if self.sockets.in_flight() else 0.0
        if connects.active or self.sockets.retries(waited):
            grace = max(grace, ATTEMPTS)
        return Outlook(busy + threads.at_work + connects.here, [*open_ends, *sockets.listening, *signals], grace)

    def watched(self) -> dict[str, Callable[..., Any]]:
        """Return wrappers of the loop's methods that send something outside, which record the call."""
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
    """Of `asyncio.to_thread(f)`, which gives `partial(context.run, f)`, it is f."""
    if isinstance(function, functools.partial):
        return _job_name(function.func, (*function.args, *args))
    if getattr(function, "__name__", "") == "run" and args and callable(args[0]):
        function = args[0]
    return str(getattr(function, "__qualname__", function))
