"""What a call prints, where it can only print: for calls that tell in no other way and are the same everywhere."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

__all__ = ["printed"]

# `sys.stdout` is one for all threads. Who replaces it holds this lock, from before he reads it until he puts it back.
_REPLACING: Final = threading.Lock()


class _Apart(io.StringIO):
    """Keeps what one thread writes. What others write meanwhile goes where it belongs."""

    def __init__(self, thread: int, others: Any) -> None:
        super().__init__()
        self._thread = thread
        self._others = others

    def write(self, text: str, /) -> int:
        if threading.get_ident() == self._thread:
            return super().write(text)
        return 0 if self._others is None else int(self._others.write(text))

    def flush(self) -> None:
        if self._others is not None:
            self._others.flush()


def printed(call: Callable[[], object]) -> str:
    """Return what the call prints in this thread. Several threads wait for one another; the call must not nest this."""
    with _REPLACING:
        others = sys.stdout
        sys.stdout = kept = _Apart(threading.get_ident(), others)
        try:
            call()
        finally:
            sys.stdout = others
    return kept.getvalue()
