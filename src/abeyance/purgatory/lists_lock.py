"""The lock of a purgatory's lists: short, never held over user code, and never a silent deadlock."""

from __future__ import annotations

import threading
from types import TracebackType

from abeyance.purgatory.errors import PurgatoryError


class ListsLock:
    """A mutex that tells its own holder off instead of hanging when that comes back for it.

    No code of the user's runs while it is held, so how could its holder come back? Between any two
    bytecodes of the interpreted build the interpreter may collect garbage, and run a finaliser, or run a
    signal handler; and either may call the purgatory, whose lists are half changed at that moment. A plain
    lock would hang there for ever, a reentrant one would let it work on the half-changed lists. This one
    raises: the finaliser's or the handler's call fails, visibly, and the lists stay sound. (Compiled code
    has no such gaps.)
    """

    __slots__ = ("_busy", "_mutex")

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._busy = False

    def __enter__(self) -> None:
        self._mutex.acquire()
        if self._busy:  # only the holder can get here and find it so
            self._mutex.release()
            raise PurgatoryError(
                "a finaliser or a signal handler called the purgatory in the middle of a change to its lists; "
                "let it set a flag, or hand the call to a thread"
            )
        self._busy = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._busy = False
        self._mutex.release()
