"""Telling of an error that no caller is there to catch: in a timer's thread, say. It cannot fail.

Whatever tells of an error is somebody's code: `on_error`, a handler or a filter of the log, the `repr` of a callback, a
loop's exception handler. Where that raises, the error and what was raised meanwhile go together to
`sys.unraisablehook`, as what a finaliser raises does, and whoever reported goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


def logger(room: str) -> logging.Logger:
    """The logger of a part of this package: `abeyant.<room>`."""
    from logging import getLogger  # here, for to import it takes longer than all the rest

    return getLogger(f"abeyant.{room}")


def report(
    error: BaseException,
    reporter: object,
    culprit: object,
    room: str,
    on_error: Callable[[Any, Any], object] | None = None,
    caught: type[BaseException] = Exception,
) -> None:
    """Call `on_error(error, culprit)` with what `culprit` raised. Without `on_error`, or if it raises, log the error.

    The logger is that of `room`. Raises no error of the class `caught`.
    """
    if on_error is not None:
        try:
            on_error(error, culprit)
            return
        except caught as broken:
            message = "%s: on_error raised while handling an error of %s"
            log(broken, room, message, reporter, culprit, about=error, caught=caught)
    log(error, room, "%s: %s raised", reporter, culprit, caught=caught)


def log(
    error: BaseException,
    room: str,
    message: str,
    *things: object,
    about: BaseException | None = None,
    caught: type[BaseException] = Exception,
) -> None:
    """Log `message`, formatted with `things`, and the traceback of `error`. Raises no error of the class `caught`.

    `about` is the error that was being reported when `error` was raised.
    """

    def write() -> None:
        # Shown here and not where records are formatted: their `repr` may take a lock, and there logging has its own.
        logger(room).error(message, *[shown(thing, caught) for thing in things], exc_info=error)

    attempt(write, error if about is None else about, caught)


def attempt(tell: Callable[[], object], error: BaseException, caught: type[BaseException] = Exception) -> None:
    """Call `tell`, which reports `error`; if it raises, both errors go to `sys.unraisablehook`."""
    try:
        tell()
    except caught as broken:
        if broken is not error and broken.__context__ is None:
            broken.__context__ = error  # so that one traceback shows both
        with suppress(caught):
            _Unraisable(broken)


def shown(thing: object, caught: type[BaseException] = Exception) -> str:
    """Return `repr(thing)`, or its type and address if that raises."""
    try:
        return repr(thing)
    except caught as broken:
        return f"<{type(thing).__name__} at {id(thing):#x}, whose repr raised {type(broken).__name__}>"


class _Unraisable:
    """Hands an error to the interpreter, as one that nobody can catch: it is raised by a finaliser."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error
