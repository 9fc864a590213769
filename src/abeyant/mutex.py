"""The lock of what is changed in several steps, and whether one is needed: see "Threads" in docs/design.md."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

from abeyant.engine import is_compiled
from abeyant.engine.collector import pause_collection, resume_collection

LOCKED = not is_compiled() or "t" in getattr(sys, "abiflags", "t")
"""Whether a lock is a lock; False where the interpreter's global one does for all. A free-threaded interpreter (its
ABI's flag is t) may have that one now, while it loads some module, and not any more later."""


class Mutex:
    """A mutex that refuses its own holder instead of hanging (POSIX: an error-checking mutex). For interpreted code.

    No code of the user's runs while it is held, so how could its holder come back for it? Between any two bytecodes
    the interpreter may run a signal handler, or collect garbage and run a finaliser; and either may call what is
    half changed at that moment. A plain lock would hang there for ever, a reentrant one would let it work on what is
    half changed. So the collector is paused meanwhile; and a signal handler, which nothing can hold off, gets an
    error. A handler that does not catch it strikes like any asynchronous exception, which is not defended against.
    (One thread at a time can pause the collector: where two overlap, a finaliser may still come, and gets the error.)
    """

    __slots__ = ("_busy", "_error", "_mutex", "_paused", "_what")

    def __init__(self, what: str, error: type[Exception] = RuntimeError) -> None:
        """`what` it guards, for the message of `error`."""
        self._what = what
        self._error = error
        self._mutex: Any = threading.RLock()
        self._busy = False
        self._paused = False

    def acquire(self) -> None:
        """Take it, or raise where this thread has it."""
        self._mutex.acquire()
        if self._busy:  # only the holder can get here and find it so
            self._mutex.release()
            raise self._error(
                f"a finaliser or a signal handler called {self._what} in the middle of a change to it; "
                "let it set a flag, or hand the call to a thread"
            )
        paused = pause_collection()
        self._busy = True
        self._paused = paused

    def release(self) -> None:
        """Give it back."""
        paused = self._paused
        self._busy = self._paused = False
        self._mutex.release()
        resume_collection(paused)  # with the lock free, for finalisers run here

    def abandon(self) -> None:
        """Release the lock, however often this thread holds it, after an exception between two bytecodes."""
        if self._mutex._is_owned():
            self._busy = False
            resume_collection(self._paused)
            self._paused = False
            while self._mutex._is_owned():
                self._mutex.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def mutex(what: str, error: type[Exception] = RuntimeError) -> Any:
    """The lock for something of ours: compiled code has no gaps for a handler or a finaliser."""
    return threading.RLock() if is_compiled() else Mutex(what, error)
