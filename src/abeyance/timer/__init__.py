"""Timers: the wheel with a clock. `SystemTimer` has a thread, `ManualTimer` a virtual clock."""

from abeyance.timer.base import Callback, ErrorHandler, PendingTask, Timer, TimerClosedError, TimerStats
from abeyance.timer.manual import ManualTimer
from abeyance.timer.system import SystemTimer
from abeyance.timer.task import TimerTask

__all__ = [
    "Callback",
    "ErrorHandler",
    "ManualTimer",
    "PendingTask",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
]
