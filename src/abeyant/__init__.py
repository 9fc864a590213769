"""Abeyant: delayed operations that complete when their condition holds, or expire at their deadline, once.

In process: `SystemTimer`, `ManualTimer`, `IdleDetector`, `DelayedOperation`, `Purgatory`, `Resolver`. In asyncio:
`abeyant.aio`. On Apache Spark: `abeyant.pipeline` (needs the extra `spark`). This import loads none of the last three.
"""

import os
from typing import TYPE_CHECKING, Any

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
    from abeyant.resolver import Calendar, Decided, Resolution, Resolver, ResolverClosedError, Watch
else:
    from abeyant.idle import IdleDetector

from abeyant.errors import AbeyantError
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
    "AbeyantError",
    "Calendar",
    "Callback",
    "Decided",
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
    "Resolution",
    "Resolver",
    "ResolverClosedError",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
    "Watch",
    "__version__",
]


_LAZY = ("Calendar", "Decided", "Resolution", "Resolver", "ResolverClosedError", "Watch")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from abeyant import resolver

    globals()[name] = found = getattr(resolver, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
