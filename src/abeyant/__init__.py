"""Abeyant: delayed operations that complete when their condition holds, or expire at their deadline, once.

In process: `SystemTimer`, `ManualTimer`, `IdleDetector`, `DelayedOperation`, `Purgatory`. In asyncio: `abeyant.aio`.
On Apache Spark: `abeyant.pipeline` (needs the extra `spark`). This import pulls in none of them.
"""

import os
from typing import TYPE_CHECKING

if os.environ.get("ABEYANT_PURE", "0") not in ("", "0"):
    from abeyant import _interpreted

    _interpreted.install()
else:
    try:
        from abeyant.engine import slab as _slab  # noqa: F401  the first that is compiled
    except ImportError as error:
        from abeyant import _interpreted

        _interpreted.install_in_subinterpreter(error)

if TYPE_CHECKING:
    from abeyant._idle_generic import IdleDetector
else:
    from abeyant.idle import IdleDetector

from abeyant.idle import IdleStats
from abeyant.purgatory import (
    DelayedOperation,
    OperationReusedError,
    Outcome,
    Purgatory,
    PurgatoryClosedError,
    PurgatoryError,
    PurgatoryStats,
)
from abeyant.timer import (
    Callback,
    ErrorHandler,
    ManualTimer,
    PendingTask,
    RepeatingTask,
    SystemTimer,
    Timer,
    TimerClosedError,
    TimerStats,
    TimerTask,
)

__version__ = "0.1.0"

__all__ = [
    "Callback",
    "DelayedOperation",
    "ErrorHandler",
    "IdleDetector",
    "IdleStats",
    "ManualTimer",
    "OperationReusedError",
    "Outcome",
    "PendingTask",
    "Purgatory",
    "PurgatoryClosedError",
    "PurgatoryError",
    "PurgatoryStats",
    "RepeatingTask",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
    "__version__",
]
