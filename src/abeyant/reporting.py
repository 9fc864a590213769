"""Report an error that no caller can catch, for instance an error in a timer's thread. Reporting itself never fails.

Reporting runs users' code: `on_error`, a handler or a filter of the log, the `repr` of a callback, a loop's exception
handler. If that code raises, both errors go to `sys.unraisablehook`, as errors in finalisers do, and the reporting code
continues.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


def logger(room: str) -> logging.Logger:
    """Return the logger `abeyant.<room>`; a room is a subpackage, such as `timer`."""
    from logging import getLogger  # here: its import takes longer than all the rest

    return getLogger(f"abeyant.{room}")


def report(
    error: BaseException,
    reporter: object,
    culprit: object,
    room: str,
    on_error: Callable[[Any, Any], object] | None = None,
    caught: type[BaseException] = Exception,
) -> None:
    """Report `error`, which `culprit` raised, to `on_error(error, culprit)`. If that raises or is None, log the error.

    `reporter` is the object that called `culprit`. `room` is as in `logger`. Never raises an error of class `caught`.
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
    """Log `message`, formatted with `things`, and the traceback of `error`. Never raises an error of class `caught`.

    `about` is the error that was being reported when `error` was raised.
    """

    def write() -> None:
        # Call `repr` here, not when records are formatted: it may take a lock, and logging holds its own then.
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
    """An object whose finaliser raises an error, which sends the error to `sys.unraisablehook`."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error
