"""The event loops: `loop.call_later`, inside the running loop."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TypeVar

from benchmarks.measurement import Steps
from benchmarks.rivals.rival import Rival

T = TypeVar("T")


class AsyncioRival(Rival):
    """asyncio's own loop. A turn is an iteration of the loop; everything runs in its thread."""

    forgets = False  # the loop refers to its handles

    def __init__(self) -> None:
        self.loop = self.new_loop()
        self.call = self.loop.call_later

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """A loop of the kind."""
        return asyncio.SelectorEventLoop()

    def run(self, program: Steps[T]) -> T:
        """As `Rival.run`, in a coroutine."""
        return self.loop.run_until_complete(self._run(program))

    async def _run(self, program: Steps[T]) -> T:
        while True:
            try:
                finished = next(program)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if finished is None:
                await asyncio.sleep(0)
            else:
                # Looks once an iteration, and not more than a hundred times a second when there is nothing to do.
                await asyncio.sleep(0)
                while not finished():
                    await asyncio.sleep(0.01)

    def close(self) -> None:
        """Close the loop."""
        self.loop.close()


class UvloopRival(AsyncioRival):
    """uvloop: libuv's loop and its heap of timers."""

    @classmethod
    def require(cls) -> None:
        """It comes with requirements/bench.txt."""
        import_module("uvloop")

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """A loop of the kind."""
        loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
        return loop
