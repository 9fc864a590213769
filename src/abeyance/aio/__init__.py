"""asyncio on the timing wheel: an event loop to put in place of asyncio's own, and virtual time for tests.

The loop on uvloop, `UvloopEventLoop`, is there when uvloop is installed.
"""

from typing import TYPE_CHECKING, Any

from abeyance.aio.loop import EventLoop
from abeyance.aio.running import loop_factory, run, uvloop_factory
from abeyance.aio.virtual import DeadlockError, VirtualClock, Waiting, run_virtual, virtual_time

if TYPE_CHECKING:
    from abeyance.aio.uvloop_loop import UvloopEventLoop

__all__ = [
    "DeadlockError",
    "EventLoop",
    "UvloopEventLoop",
    "VirtualClock",
    "Waiting",
    "loop_factory",
    "run",
    "run_virtual",
    "uvloop_factory",
    "virtual_time",
]


def __getattr__(name: str) -> Any:
    if name == "UvloopEventLoop":
        from abeyance.aio.uvloop_loop import UvloopEventLoop

        return UvloopEventLoop
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
