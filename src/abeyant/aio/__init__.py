"""asyncio on the timing wheel: a loop in place of asyncio's own, or a timer and a purgatory on any; virtual time.

The loop on uvloop, `UvloopEventLoop`, is there when uvloop is installed. It, the purgatory and virtual time are
imported when they are first asked for.
"""

from typing import TYPE_CHECKING

from abeyant.aio.loop import EventLoop
from abeyant.aio.running import loop_factory, run, uvloop_factory
from abeyant.aio.timer import Timer
from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.aio.purgatory import Outcome, Purgatory
    from abeyant.aio.uvloop_loop import UvloopEventLoop
    from abeyant.aio.virtual import DeadlockError, VirtualClock, Waiting, run_virtual, virtual_time

__all__ = [
    "DeadlockError",
    "EventLoop",
    "Outcome",
    "Purgatory",
    "Timer",
    "UvloopEventLoop",
    "VirtualClock",
    "Waiting",
    "loop_factory",
    "run",
    "run_virtual",
    "uvloop_factory",
    "virtual_time",
]

_HOMES = {
    "Outcome": "purgatory",
    "Purgatory": "purgatory",
    "UvloopEventLoop": "uvloop_loop",
    "DeadlockError": "virtual",
    "VirtualClock": "virtual",
    "Waiting": "virtual",
    "run_virtual": "virtual",
    "virtual_time": "virtual",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
