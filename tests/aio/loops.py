"""The loops that the tests run on, and a clock for them that moves when told."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from abeyant import aio

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]

OURS: dict[str, LoopFactory] = {"selector": aio.loop_factory, "uvloop": aio.uvloop_factory}


def run(main: Coroutine[Any, Any, T], factory: LoopFactory, *, debug: bool = False) -> T:
    """Run a coroutine on a loop of the factory's."""
    return aio.run(main, loop_factory=factory, debug=debug)


class JumpingSelector(selectors.DefaultSelector):
    """Lets a clock jump by as long as it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Look at the sockets, wait for none."""
        events = super().select(0)
        if not events and timeout:
            self.now += timeout
        return events


def virtual_loop(make: Callable[[JumpingSelector], asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
    """A loop, `make(selector)`, whose clock begins at 0 and jumps to the next deadline."""
    selector = JumpingSelector()
    loop = make(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    return loop
