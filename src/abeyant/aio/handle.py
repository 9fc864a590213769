# cython: nonecheck=True
"""The handle that `loop.call_later` and `loop.call_at` return: like asyncio's TimerHandle, but on the wheel."""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from asyncio import format_helpers
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abeyant.engine import uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.aio.calling import call_in
else:
    from cython.cimports.abeyant.aio.calling import call_in

from abeyant.engine.wheel import TimingWheel
from abeyant.signature import CLASS_SIGNATURE

_Stock: Any = asyncio.TimerHandle
# Newer versions of asyncio take the debug mode as an argument, and show a callback's arguments only then.
_TAKES_DEBUG = "debug" in inspect.signature(format_helpers._format_callback_source).parameters
_PACKAGE = __name__.rpartition(".")[0]


@cython.freelist(1024)
@cython.cclass
class TimerHandle:
    """A scheduled callback in a loop's wheel. To other code it is an `asyncio.TimerHandle`, also for `isinstance`.

    `cancel` removes the handle from the wheel in O(1); the loop then has no reference to the handle or its callback.
    Not thread-safe, like asyncio's handles. The class is not a subclass of asyncio's, because a compiled class is five
    times as fast; off the hot path it calls asyncio's own methods, so that it behaves the same.
    """

    __slots__ = (
        "__weakref__", "_args", "_callback", "_cancelled", "_context", "_deadline", "_loop", "_repr",
        "_source_traceback", "_ticket", "_wheel", "_whole",
    )  # fmt: skip
    __signature__ = CLASS_SIGNATURE

    # `Schedule.add` sets all of these. The names are asyncio's where it has them.
    _callback: Callable[..., object] | None
    _args: tuple[Any, ...] | None
    _cancelled: bool
    _context: Context
    _loop: asyncio.AbstractEventLoop
    _repr: str | None
    _source_traceback: traceback.StackSummary | None  # of its creation, in debug mode
    _deadline: float
    _whole: bool  # whether `when` was an int
    _wheel: TimingWheel
    _ticket: int  # the wheel's handle for it; stale once it has left the wheel

    def __init__(self) -> None:
        """Raise TypeError, as only a loop's `call_later` and `call_at` create handles."""
        raise TypeError("a TimerHandle cannot be created directly: use the loop's call_later or call_at")

    def cancel(self) -> None:
        """Cancel the call, unless the callback has run. Release the callback and its arguments."""
        if self._cancelled:
            return
        self._cancelled = True
        self._wheel._remove(self._ticket)
        if self._source_traceback is not None:
            self._repr = repr(self)  # for the debug log, which may show it after the callback was released
        self._callback = None
        self._args = None

    def cancelled(self) -> bool:
        """Return whether `cancel` has been called."""
        return self._cancelled

    def when(self) -> float:
        """Return the deadline on the loop's clock (`loop.time()`). The callback never runs earlier."""
        return self._when

    @property
    def _when(self) -> float:  # an int if it was given as one, as in asyncio
        return int(self._deadline) if self._whole else self._deadline

    def get_context(self) -> Context:
        """Return the context in which the callback will run."""
        return self._context

    def _run(self: Any) -> None:
        try:
            call_in(self._context, self._callback, self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  reported, as in asyncio (T8)
            self._report(error)

    def _report(self: Any, error: BaseException) -> None:
        mode = {"debug": self._loop.get_debug()} if _TAKES_DEBUG else {}
        source = format_helpers._format_callback_source(self._callback, self._args, **mode)
        failure = {"message": f"Exception in callback {source}", "exception": error, "handle": self}
        if self._source_traceback:
            failure["source_traceback"] = self._source_traceback
        self._loop.call_exception_handler(failure)

    @property
    def _scheduled(self) -> bool:
        return self._wheel._is_pending(self._ticket)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return _Stock

    def _repr_info(self) -> Any:
        return _Stock._repr_info(self)

    def __copy__(self) -> TimerHandle:
        """Return an equal handle, as asyncio's method does. No loop calls the copy; cancelling it has no effect."""
        return _copy_of(self)

    def __repr__(self) -> str:
        text: str = _Stock.__repr__(self)
        return text

    def __hash__(self) -> int:
        return hash(self._deadline)

    def __eq__(self, other: object) -> Any:
        return _Stock.__eq__(self, other)

    def __lt__(self, other: object) -> Any:
        return _Stock.__lt__(self, other)

    def __le__(self, other: object) -> Any:
        return _Stock.__le__(self, other)

    def __gt__(self, other: object) -> Any:
        return _Stock.__gt__(self, other)

    def __ge__(self, other: object) -> Any:
        return _Stock.__ge__(self, other)


def _copy_of(handle: TimerHandle) -> TimerHandle:
    copied = TimerHandle.__new__(TimerHandle)
    copied._callback = handle._callback
    copied._args = handle._args
    copied._cancelled = handle._cancelled
    copied._context = handle._context
    copied._loop = handle._loop
    copied._repr = handle._repr
    copied._source_traceback = handle._source_traceback
    copied._deadline = handle._deadline
    copied._whole = handle._whole
    copied._wheel = handle._wheel
    copied._ticket = 0  # never a handle of a wheel
    return copied


def creation_stack() -> traceback.StackSummary:
    """Return the call stack up to the code that called this package, for debug mode."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return format_helpers.extract_stack(frame)
