"""Abeyance: delayed operations that complete when their condition holds, or expire at their deadline, once.

In process: `SystemTimer`, `ManualTimer`, `IdleDetector`, `DelayedOperation`, `Purgatory`. In asyncio: `abeyance.aio`.
On Apache Spark: `abeyance.pipeline` (needs the extra `spark`). This import pulls in none of them.
"""

import os
from typing import TYPE_CHECKING

if os.environ.get("ABEYANCE_PURE", "0") not in ("", "0"):
    from abeyance import _interpreted

    _interpreted.install()
else:
    try:
        from abeyance.engine import slab as _slab  # noqa: F401  the first that is compiled
    except ImportError as error:
        from abeyance import _interpreted

        _interpreted.install_in_subinterpreter(error)

if TYPE_CHECKING:
    from abeyance._idle_generic import IdleDetector
else:
    from abeyance.idle import IdleDetector

from abeyance.idle import IdleStats
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
    Callback,
    ErrorHandler,
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
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
    "__version__",
]
