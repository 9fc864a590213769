"""Run a coroutine on a new loop in virtual time, like `asyncio.run`."""

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
    """Run the coroutine `main` on a new loop in virtual time, close the loop, and return the result of `main`.

    `clock` defaults to `VirtualClock()`, which starts at 0. `debug` and `loop_factory` are as in `asyncio.Runner`; the
    default loop is an `aio.EventLoop`. Tasks cancelled at the end also run in virtual time.

    Raises DeadlockError when nothing can run any more, TypeError if `main` is not a coroutine, and RuntimeError inside
    a running loop, on a loop without a selector, or if `clock` is in use.

    Examples:
        >>> async def main():
        ...     await asyncio.sleep(3600.0)  # takes no time
        ...     return asyncio.get_running_loop().time()
        >>> run_virtual(main())
        3600.0
    """
    if not asyncio.iscoroutine(main):
        raise TypeError(f"run_virtual takes a coroutine, as in run_virtual(main()), not {main!r}")
    try:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("run_virtual creates a new loop; inside a running one use `async with virtual_time()`")
        clock = VirtualClock() if clock is None else clock
        with asyncio.Runner(debug=debug, loop_factory=loop_factory or _new_loop) as runner:
            mount = Mount(runner.get_loop(), clock, fresh=True)
            try:
                return runner.run(_in_clock(clock, main))
            except DeadlockError:
                # The clean-up may deadlock again, and tasks that await each other in a circle cannot be cancelled.
                # Report the first error.
                with contextlib.suppress(DeadlockError, RecursionError):
                    runner.close()
                raise
            finally:
                runner.close()
                mount.remove()
    finally:
        main.close()  # in case it never started


def _new_loop() -> EventLoop:
    """Return an EventLoop. Do not warn if it is interpreted, as speed hardly matters in virtual time."""
    loop = EventLoop.__new__(EventLoop)
    super(EventLoop, loop).__init__()
    return loop


async def _in_clock(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    async with clock:
        return await main
