"""Abeyant: delayed operations that complete when their condition holds, or expire at their deadline, once.

In process: `SystemTimer`, `ManualTimer`, `IdleDetector`, `DelayedOperation`, `Purgatory`, `Resolver`. In asyncio:
`abeyant.aio`. On Apache Spark: `abeyant.pipeline` (needs the extra `spark`). `import abeyant` loads none
of `Resolver`, `abeyant.aio` and `abeyant.pipeline`.
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
    from abeyant.purgatory.ports import ReentrantLock
    from abeyant.resolver import (
        Calendar,
        Decided,
        Instant,
        Resolution,
        ResolutionOutcome,
        Resolver,
        ResolverClosedError,
        ResolverStats,
        Watch,
    )
    from abeyant.timer.meter import Durations, Latencies
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
    "Durations",
    "ErrorHandler",
    "IdleDetector",
    "IdleStats",
    "Instant",
    "Latencies",
    "ManualTimer",
    "OperationReusedError",
    "Outcome",
    "PendingTask",
    "Purgatory",
    "PurgatoryClosedError",
    "PurgatoryError",
    "PurgatoryStats",
    "ReentrantLock",
    "RepeatingTask",
    "Resolution",
    "ResolutionOutcome",
    "Resolver",
    "ResolverClosedError",
    "ResolverStats",
    "SystemTimer",
    "Timer",
    "TimerClosedError",
    "TimerStats",
    "TimerTask",
    "Watch",
    "__version__",
]


_LAZY = {
    "Durations": "timer.meter",
    "Latencies": "timer.meter",
    "ReentrantLock": "purgatory.ports",
    **dict.fromkeys(("Calendar", "Decided", "Instant", "Resolution", "ResolutionOutcome"), "resolver"),
    **dict.fromkeys(("Resolver", "ResolverClosedError", "ResolverStats", "Watch"), "resolver"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = found = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
