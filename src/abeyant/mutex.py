"""The lock for state that changes in several steps, and whether locks are needed: see "Threads" in docs/design.md."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

from abeyant.engine import is_compiled
from abeyant.engine.collector import pause_collection, resume_collection

LOCKED = not is_compiled() or "t" in getattr(sys, "abiflags", "t")
"""Whether locks are necessary; False if the GIL is enough.

A free-threaded interpreter (ABI flag t) needs locks even if its GIL is enabled now: the GIL may be enabled only while a
module is loaded.
"""


class Mutex:
    """A mutex that raises if its holder acquires it again (POSIX: an error-checking mutex). For interpreted code.

    No user code is called while the mutex is held. But between any two bytecodes the interpreter may run a signal
    handler, or collect garbage and run a finaliser, and this code may call the guarded object amid a change. A plain
    lock would deadlock there; a reentrant lock would let the call work on half-changed state. So the garbage
    collector is paused while the mutex is held. A signal handler cannot be delayed: its call raises the error, which
    interrupts the program like any asynchronous exception unless the handler catches it. (Only one thread at a time
    can pause the collector: while two threads hold mutexes, a finaliser may still run, and its call raises the error.)
    """

    __slots__ = ("_busy", "_error", "_mutex", "_paused", "_what")

    def __init__(self, what: str, error: type[Exception] = RuntimeError) -> None:
        """Create a mutex that is free. `what` names the guarded object in the message of `error`."""
        self._what = what
        self._error = error
        self._mutex: Any = threading.RLock()
        self._busy = False
        self._paused = False

    def acquire(self) -> None:
        """Acquire the mutex, and pause the garbage collector. Raises `error` if this thread holds it already."""
        self._mutex.acquire()
        if self._busy:  # true only for its holder
            self._mutex.release()
            raise self._error(
                f"a finaliser or a signal handler called {self._what} in the middle of a change to it; "
                "set a flag there instead, or call it in another thread"
            )
        paused = pause_collection()
        self._busy = True
        self._paused = paused

    def release(self) -> None:
        """Release the mutex, and resume the garbage collector."""
        paused = self._paused
        self._busy = self._paused = False
        self._mutex.release()
        resume_collection(paused)  # with the lock free, for finalisers run here

    def abandon(self) -> None:
        """Release the lock, however often this thread has acquired it, after an exception between two bytecodes."""
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
    """Return a `Mutex`; if compiled a plain RLock, as no signal handler or finaliser interrupts compiled code."""
    return threading.RLock() if is_compiled() else Mutex(what, error)
