"""Abeyance: delayed operations that complete when their condition holds, or expire at their deadline, once.

In process: `SystemTimer`, `ManualTimer`, `DelayedOperation`, `Purgatory`. On Apache Spark: `abeyance.pipeline`
(needs the extra `spark`). This import pulls in neither Spark nor a network.
"""

import os

if os.environ.get("ABEYANCE_PURE"):
    from abeyance import _interpreted

    _interpreted.install()

from abeyance.purgatory import (
    DelayedOperation,
    OperationReusedError,
    Outcome,
    Purgatory,
    PurgatoryClosedError,
    PurgatoryError,
    PurgatoryStats,
)
from abeyance.timer import (
    ManualTimer,
    PendingTask,
    SystemTimer,
    Timer,
    TimerClosedError,
    TimerStats,
    TimerTask,
)

__version__ = "0.1.0"

__all__ = [
    "DelayedOperation",
    "ManualTimer",
    "OperationReusedError",
    "Outcome",
    "PendingTask",
    "Purgatory",
    "PurgatoryClosedError",
    "PurgatoryError",
    "PurgatoryStats",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
    "__version__",
]
