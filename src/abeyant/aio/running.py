"""Run a program on our event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from abeyant import _interpreted
from abeyant.aio.loop import EventLoop
from abeyant.engine import is_compiled

T = TypeVar("T")


def loop_factory() -> asyncio.AbstractEventLoop:
    """Return a new `EventLoop`. Pass this function to `asyncio.Runner(loop_factory=...)` and the like."""
    return EventLoop()


def uvloop_factory() -> asyncio.AbstractEventLoop:
    """Return a new `UvloopEventLoop`: uvloop with its timers on the wheel. Raises ImportError if uvloop is missing."""
    try:
        from abeyant.aio.uvloop_loop import UvloopEventLoop
    except ModuleNotFoundError as error:
        if error.name != "uvloop":
            raise
        raise ModuleNotFoundError("uvloop is not installed: pip install uvloop", name="uvloop") from error
    loop: asyncio.AbstractEventLoop = UvloopEventLoop()
    return loop


def run(
    main: Coroutine[Any, Any, T],
    *,
    debug: bool | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = loop_factory,
) -> T:
    """Run a coroutine on a new `aio.EventLoop`, and return its result, like `asyncio.run`.

    `loop_factory` creates another kind of loop; `aio.uvloop_factory` uses uvloop. Raises RuntimeError if a loop is
    already running in this thread.
    """
    try:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("aio.run() cannot be called from a running event loop: await the coroutine instead")
        if not is_compiled():
            _interpreted.warn_once("abeyant.aio.run", stacklevel=2)  # raises where warnings are errors
    except BaseException:
        if asyncio.iscoroutine(main):
            main.close()
        raise
    with asyncio.Runner(debug=debug, loop_factory=loop_factory) as runner:
        return runner.run(main)
