"""Processes of a simulation: coroutines that can be killed, as by SIGKILL, and started again.

A context variable holds the current process, so tasks, timers and connections belong to the process in which they are
started. When a process is killed, none of its code runs again, not even `finally` and `except`, and its connections are
closed as by the operating system. A new start calls the function of the process anew, so state in memory is lost.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

from abeyant.simulation.errors import SimulationError
from abeyant.simulation.ports import OWNER, Life, Loop


class Process:
    """A program in a simulation. `kill` it and `start` it again; `wait` for its end."""

    def __init__(
        self, loop: Loop, name: str, main: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...]
    ) -> None:
        """Not for users: `SimulationLoop.process` makes processes."""
        self.name = name
        """The name of the process in traces and messages."""
        self.starts = 0
        """The number of starts so far."""
        self.life: Life | None = None
        self.clock_ahead = 0.0
        """Seconds by which its wall clock is ahead (negative: behind), from its next start on."""
        self.task: asyncio.Task[Any] | None = None
        self._loop = loop
        self._main = main
        self._args = args

    @property
    def running(self) -> bool:
        """Return whether the process has been started, and has neither ended nor been killed."""
        return self.life is not None and not self.life.dead and self.task is not None and not self.task.done()

    def start(self) -> None:
        """Start the process by calling its function. Raises SimulationError if the process is running."""
        if self.running:
            raise SimulationError(f"process {self.name!r} is running: kill it first")
        if self.life is not None:
            self._loop.end_life(self.life)
        self.starts += 1
        life = self.life = Life(self.name, self.starts, self.clock_ahead)
        context = contextvars.copy_context()
        context.run(OWNER.set, life)
        self._loop.trace.add(self._loop.now, f"start {self.name}")
        self.task = self._loop.create_task(
            context.run(self._main, *self._args), name=f"{self.name} {self.starts}", context=context
        )
        self.task.add_done_callback(self._ended)

    def kill(self) -> None:
        """Kill the process, as SIGKILL does: none of its code runs again, and its connections end."""
        if self.life is not None and not self.life.dead:
            self._loop.trace.add(self._loop.now, f"kill {self.name}")
            self._loop.end_life(self.life)

    async def wait(self) -> Any:
        """Wait until the process ends; return its result or raise its error. Raises SimulationError if it is killed."""
        task = self.task
        if task is None:
            raise SimulationError(f"process {self.name!r} has not been started: call start() first")
        while not task.done():
            if self.life is not None and self.life.dead:
                raise SimulationError(f"process {self.name!r} was killed")
            await asyncio.sleep(0.01)
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Report the error that ended the process, if any."""
        if not task.cancelled() and task.exception() is not None and task is self.task:
            self._loop.process_failed(self, task.exception())

    def __repr__(self) -> str:
        state = "running" if self.running else "not started" if self.life is None else "ended"
        return f"<Process {self.name!r}, {state}>"
