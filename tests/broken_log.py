"""A log that raises when it is written to, and what then comes to `sys.unraisablehook`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

KINDS = ["handler", "filter", "hook"]
_LOGGERS = ["abeyant.timer", "abeyant.purgatory", "asyncio"]


class LogError(RuntimeError):
    """What a broken log raises."""


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise LogError("the handler")


def _filter(record: logging.LogRecord) -> bool:
    raise LogError("the filter")


@contextmanager
def broken_log(kind: str) -> Iterator[list[BaseException]]:
    """Break the root's handler, or the loggers' filters; with "hook" the last resort too. Yields what came to that."""
    unraisable: list[BaseException] = []

    def hook(args: Any) -> None:
        unraisable.append(args.exc_value)
        if kind == "hook":
            raise LogError("the hook")

    root = logging.getLogger()
    handlers, earlier = list(root.handlers), sys.unraisablehook
    sys.unraisablehook = hook
    try:
        if kind == "filter":
            for name in _LOGGERS:
                logging.getLogger(name).addFilter(_filter)
        else:
            root.handlers[:] = [_Handler()]
        yield unraisable
    finally:
        root.handlers[:] = handlers
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(_filter)
        sys.unraisablehook = earlier
