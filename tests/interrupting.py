"""Let a signal handler run before any line of the package's own, one line after another."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import abeyant

HOUSE = str(Path(abeyant.__file__).parent)


@contextmanager
def interrupting(at: int, handler: Callable[[], object]) -> Iterator[list[int]]:
    """Raise a signal before the line number `at` that this thread comes to in the package; yields the lines' count.

    For the main thread, and interpreted code: compiled code has no lines between which a handler could run.
    """
    count = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(HOUSE):
            return None
        if event == "line":
            count[0] += 1
            if count[0] == at:
                signal.raise_signal(signal.SIGUSR1)
        return trace

    earlier = signal.signal(signal.SIGUSR1, lambda *_: handler())
    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(tracing)
        signal.signal(signal.SIGUSR1, earlier)
