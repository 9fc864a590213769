"""The rivals that are event loops: `loop.call_later`, measured inside the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from abeyant import IdleDetector, aio
from lab.benchmarks.measurement import Steps
from lab.peers.rival import Rival, noop

T = TypeVar("T")


class AsyncioRival(Rival):
    """asyncio's own loop. A turn is an iteration of the loop; everything runs in its thread."""

    forgets = False  # the loop refers to its handles

    def __init__(self) -> None:
        self.loop = self.new_loop()
        self.call = self.loop.call_later

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop."""
        return asyncio.SelectorEventLoop()

    def run(self, program: Steps[T]) -> T:
        """Run a row's program, as `Rival.run` does, but in a coroutine of the loop."""
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
                # Poll once an iteration, at most 100 times a second while nothing else runs.
                await asyncio.sleep(0)
                while not finished():
                    await asyncio.sleep(0.01)

    def idle_connections(self, count: int, timeout: float) -> Callable[[list[int]], None]:
        """Start a time-out on each of `count` connections. Return a function that restarts some of them."""
        call = self.call
        handles = [call(timeout, noop) for _ in range(count)]

        def restart(connections: list[int]) -> None:
            for connection in connections:
                handles[connection].cancel()
                handles[connection] = call(timeout, noop)

        return restart

    def close(self) -> None:
        """Close the loop."""
        self.loop.close()


class UvloopRival(AsyncioRival):
    """uvloop: libuv's loop and its heap of timers."""

    @classmethod
    def require(cls) -> None:
        """Raise ImportError unless uvloop is installed (requirements/bench.txt)."""
        import_module("uvloop")

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop."""
        loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
        return loop


class OurLoopRival(AsyncioRival):
    """asyncio's loop with the wheel under it: the same program, unchanged."""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop."""
        return aio.loop_factory()


class OurUvloopRival(UvloopRival):
    """uvloop with the wheel under it."""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop."""
        return aio.uvloop_factory()


class IdleRival(AsyncioRival):
    """`IdleDetector` on asyncio's own loop."""

    def idle_connections(self, count: int, timeout: float) -> Callable[[list[int]], None]:
        """As `AsyncioRival.idle_connections`."""
        detector = IdleDetector(timeout, print, aio.Timer(self.loop))

        def restart(connections: list[int]) -> None:
            seen = detector.seen
            for connection in connections:
                seen(connection)

        restart(list(range(count)))
        return restart
