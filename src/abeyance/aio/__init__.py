"""asyncio on the timing wheel: an event loop to put in place of asyncio's own, `aio.run(main())`.

The loop on uvloop, `UvloopEventLoop`, is there when uvloop is installed.
"""

from typing import TYPE_CHECKING, Any

from abeyance.aio.loop import EventLoop
from abeyance.aio.running import loop_factory, run, uvloop_factory

if TYPE_CHECKING:
    from abeyance.aio.uvloop_loop import UvloopEventLoop

__all__ = [
    "EventLoop",
    "UvloopEventLoop",
    "loop_factory",
    "run",
    "uvloop_factory",
]


def __getattr__(name: str) -> Any:
    if name == "UvloopEventLoop":
        from abeyance.aio.uvloop_loop import UvloopEventLoop

        return UvloopEventLoop
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
