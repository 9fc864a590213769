"""Find the signals that may wake a loop: those with a handler of the loop's or of Python's `signal` module."""

from __future__ import annotations

import asyncio
import signal
from typing import Any


class Signals:
    """A list of a loop's signal handlers, and of handlers set by `signal.signal` since virtual time began.

    Handlers that were set before, for instance for a test runner's time-out, are most likely unrelated to the loop.
    Waiting for them would delay the report of every deadlock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record the handlers that are set already, to ignore them."""
        self._loop: Any = loop
        self._known = _pythons_handlers()

    def look(self) -> list[str]:
        """Return descriptions of the handlers that may wake the loop."""
        names = {_name(number) for number in getattr(self._loop, "_signal_handlers", ())}
        names |= {name for name, handler in _pythons_handlers().items() if self._known.get(name) is not handler}
        return [f"a handler of {name}" for name in sorted(names)]

    def ignored(self) -> list[str]:
        """Return the names of signals whose handlers were set before virtual time began."""
        return [name for name, handler in _pythons_handlers().items() if self._known.get(name) is handler]


def _pythons_handlers() -> dict[str, Any]:
    """Return the handlers of `signal` by signal name, without the Ctrl-C handlers of Python and of asyncio.Runner."""
    found = {}
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        runner = getattr(getattr(handler, "func", None), "__self__", None)
        if callable(handler) and handler is not signal.default_int_handler and not isinstance(runner, asyncio.Runner):
            found[_name(number)] = handler
    return found


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
