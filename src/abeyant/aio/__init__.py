"""asyncio on the timing wheel: a drop-in event loop, a timer and a purgatory for any loop, and virtual time.

`UvloopEventLoop` needs uvloop. This loop, the purgatory and virtual time are imported on first use.
"""

from typing import TYPE_CHECKING

from abeyant.aio.loop import EventLoop
from abeyant.aio.running import loop_factory, run, uvloop_factory
from abeyant.aio.timer import Timer
from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.aio.purgatory import Outcome, Purgatory, WaitOutcome
    from abeyant.aio.uvloop_loop import UvloopEventLoop
    from abeyant.aio.virtual import DeadlockError, VirtualClock, Waiting, WaitingTask, run_virtual, virtual_time
    from abeyant.engine.wheel import WheelStats
    from abeyant.purgatory import PurgatoryClosedError

__all__ = [
    "DeadlockError",
    "EventLoop",
    "Outcome",
    "Purgatory",
    "PurgatoryClosedError",
    "Timer",
    "UvloopEventLoop",
    "VirtualClock",
    "WaitOutcome",
    "Waiting",
    "WaitingTask",
    "WheelStats",
    "loop_factory",
    "run",
    "run_virtual",
    "uvloop_factory",
    "virtual_time",
]

_HOMES = {
    "Outcome": "purgatory",
    "Purgatory": "purgatory",
    "PurgatoryClosedError": "purgatory",
    "WaitOutcome": "purgatory",
    "UvloopEventLoop": "uvloop_loop",
    "DeadlockError": "virtual",
    "VirtualClock": "virtual",
    "Waiting": "virtual",
    "WaitingTask": "virtual",
    "WheelStats": "schedule",
    "run_virtual": "virtual",
    "virtual_time": "virtual",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
