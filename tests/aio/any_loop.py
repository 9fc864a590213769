"""The event loops on which the tests of aio run; two of them odd, and deterministic."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

import pytest

from abeyant import aio

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting lets the clock jump; it waits for nothing else, so only timers may be waited for."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        # asyncio waits for a time that is past by its clock's resolution: where floats are coarser, by the next float.
        if not ready and timeout is not None and (timeout > 0 or math.ulp(self.now) > 1e-9):
            self.now = max(self.now + timeout, math.nextafter(self.now, math.inf))
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on a virtual clock, one that jumps exactly to when the next handle is due."""

    def __init__(self, start: float = 0.0) -> None:
        self.jumping = _JumpingSelector()
        self.jumping.now = start
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


class EarlyLoop(JumpingLoop):
    """Wakes 0.7 ms early, as uvloop may, which rounds to milliseconds."""

    def call_at(self, when: float, *args: Any, **named: Any) -> asyncio.TimerHandle:  # type: ignore[override]
        return super().call_at(when - 0.0007, *args, **named)


def uvloop_or_skip() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop


LOOPS: dict[str, LoopFactory] = {
    "asyncio": asyncio.SelectorEventLoop,
    "abeyant": aio.EventLoop,
    "uvloop": uvloop_or_skip,
}


def run(main: Coroutine[Any, Any, T], factory: LoopFactory = asyncio.SelectorEventLoop, debug: bool | None = None) -> T:
    """`asyncio.run` on a loop of this kind."""
    if factory is uvloop_or_skip and find_spec("uvloop") is None:
        main.close()  # or it is warned of where it is collected, in another test
    with asyncio.Runner(loop_factory=factory, debug=debug) as runner:
        return runner.run(main)
