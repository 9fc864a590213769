"""Timers: the wheel with a clock. `SystemTimer` has a thread of its own, `ManualTimer` a virtual clock."""

from abeyant.timer.base import Callback, ErrorHandler, PendingTask, Timer, TimerClosedError, TimerStats
from abeyant.timer.manual import ManualTimer
from abeyant.timer.repeating import RepeatingTask
from abeyant.timer.system import SystemTimer
from abeyant.timer.task import TimerTask

__all__ = [
    "Callback",
    "ErrorHandler",
    "ManualTimer",
    "PendingTask",
    "RepeatingTask",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
]
