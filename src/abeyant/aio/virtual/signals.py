"""Which signals may wake a loop: those with a handler, the loop's own (`add_signal_handler`) or Python's (`signal`)."""

from __future__ import annotations

import asyncio
import signal
from typing import Any


class Signals:
    """Handlers of the loop, and those that were set by `signal.signal` since virtual time began.

    One of Python's that stood before has its own business, as a thread has (a test runner's time-out, say), and may
    have nothing to do with the loop: to wait for it would keep every deadlock from being told at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count handlers that are set from now on."""
        self._loop: Any = loop
        self._known = _pythons_handlers()

    def look(self) -> list[str]:
        """Return descriptions of the handlers that may wake the loop."""
        names = {_name(number) for number in getattr(self._loop, "_signal_handlers", ())}
        names |= {name for name, handler in _pythons_handlers().items() if self._known.get(name) is not handler}
        return [f"a handler of {name}" for name in sorted(names)]

    def not_waited_for(self) -> list[str]:
        """Return names of the signals whose handlers stood before."""
        return [name for name, handler in _pythons_handlers().items() if self._known.get(name) is handler]


def _pythons_handlers() -> dict[str, Any]:
    """By the signal's name; without those by which Ctrl-C ends a program, Python's and `asyncio.Runner`'s."""
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
