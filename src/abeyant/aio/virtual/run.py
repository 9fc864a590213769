"""`asyncio.run`, on a loop whose time is virtual from its first moment to its last."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from abeyant.aio.loop import EventLoop
from abeyant.aio.virtual.clock import VirtualClock
from abeyant.aio.virtual.deadlock import DeadlockError
from abeyant.aio.virtual.mount import Mount

T = TypeVar("T")


def run_virtual(
    main: Coroutine[Any, Any, T],
    *,
    clock: VirtualClock | None = None,
    debug: bool | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Run the coroutine `main` on a new loop in virtual time, close the loop, and return what `main` returned.

    `clock` defaults to `VirtualClock()`, which starts at 0; `debug` and `loop_factory` are those of `asyncio.Runner`,
    and the default loop is that of `aio.run`. What is cancelled at the end is so in virtual time, too.

    Raises DeadlockError when nothing can run any more, TypeError when `main` is no coroutine, and RuntimeError inside
    a running loop, on a loop that has no selector, or when `clock` is in use.
    """
    if not asyncio.iscoroutine(main):
        raise TypeError(f"run_virtual takes a coroutine, as in run_virtual(main()), not {main!r}")
    try:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("run_virtual makes a loop of its own; inside of one use `async with virtual_time()`")
        clock = VirtualClock() if clock is None else clock
        with asyncio.Runner(debug=debug, loop_factory=loop_factory or _new_loop) as runner:
            mount = Mount(runner.get_loop(), clock, fresh=True)
            try:
                return runner.run(_held(clock, main))
            except DeadlockError:
                # What was stuck may be so again in the clean-up, and tasks that wait for one another in a circle
                # cannot be cancelled at all: the first error is the one to tell.
                with contextlib.suppress(DeadlockError, RecursionError):
                    runner.close()
                raise
            finally:
                runner.close()
                mount.take_off()
    finally:
        main.close()  # in case it never began


def _new_loop() -> EventLoop:
    """Return an EventLoop that does not warn of running interpreted: in virtual time, speed does not matter."""
    loop = EventLoop.__new__(EventLoop)
    super(EventLoop, loop).__init__()
    return loop


async def _held(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    async with clock:
        return await main
