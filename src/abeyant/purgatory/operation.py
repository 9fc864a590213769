# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""An operation that waits: it completes once its condition holds, or expires at its deadline. Exactly once.

Ground rules
------------
Three kinds of locks, in the order in which a thread may take them:

1. *The operation's lock* (`_dop_lock`, reentrant, the user's own if given, maybe shared by several
   operations). It is held while the operation's own code runs: `try_complete`, `on_complete`,
   `on_expiration`. So no two threads are inside one operation at a time, and what `try_complete` saw still
   holds when `on_complete` runs, as far as the operation's own state goes. It guards `_dop_trying` and
   `_dop_again`. A thread that holds one never *waits* for another (see nesting.py); hence no circle of
   waits.
2. *The lock of the purgatory's lists* (`Directory.lock`; `_UNSUBMITTED` while the operation is in no
   purgatory). It guards `_dop_state`, `_dop_watches`, `_dop_task`, `_dop_home`. It is the last lock that
   a thread takes: while it is held no user code runs and no other lock is waited for, the timer's
   included. Compiled, on an interpreter with a global lock (GIL), the GIL is this lock, and nothing is
   acquired: between lock and unlock stands C code that does not release the GIL, makes no object that the
   garbage collector tracks, and drops no last reference. Keep it so.
3. *The timer's lock* is the timer's own affair. We call the timer with the lists' lock free, and it calls
   us with its own lock free.

Why each race is safe:

* *Who ends it?* Completion in several threads, expiry, cancelling: each goes through `Life._pass`, which
  compares and sets `_dop_state` under lock 2. One of them finds the operation pending and wins; the others
  get False (P1).
* *A completion while the submitter still adds watches.* The end sets the state and takes all the watches
  out in one critical section; a watch is added only under the same lock, after a look at the state. Either
  the watch is there and is taken out, or the end is seen and the watch is not added (P4).
* *A completion while the timer is being started.* The started timer is noted under lock 2 if the operation
  is still pending, and is stopped at once if it is not; the end takes the note and stops it. One of the two
  does (P2, P4).
* *Expiry while `try_complete` runs in another thread.* Expiry waits for lock 1. If the try completes the
  operation, expiry finds it ended; the deadline is inclusive.
* *Cancelling while `try_complete` runs in another thread.* Cancelling runs no code of the operation's and
  so does not wait for lock 1. From then on that try cannot complete the operation any more: it belongs to
  the caller that cancelled it.
* *A check from inside its own try* (`try_complete` changes something and calls `check_and_complete` on its
  own key, maybe through other operations) cannot start a second try within the first. It leaves a note,
  `_dop_again`, and the first is repeated, so the change is not missed (P2).
* `_dop_state` and `_dop_home` are read without a lock in places. Both are single references, `_dop_home` is
  written once, and `_dop_state` leaves PENDING once; a stale PENDING costs a look under the lock, never a
  wrong end.

An asynchronous exception (KeyboardInterrupt from a signal) that strikes between two bytecodes of our own is
not defended against, as in the standard library; one that comes out of the user's code is.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.mutex import LOCKED, mutex
from abeyant.purgatory.errors import PurgatoryError
from abeyant.purgatory.nesting import Locked, begin, defer, enter_at_any_depth, leave, whole_lock
from abeyant.reporting import log
from abeyant.signature import CLASS_SIGNATURE
from abeyant.timer.units import as_float

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.callbacks import is_coroutine
else:
    from cython.cimports.abeyant.timer.callbacks import is_coroutine

if TYPE_CHECKING:
    from abeyant.purgatory.ports import ReentrantLock, Stoppable

Outcome = Literal["completed", "expired", "cancelled"]
"""How a `DelayedOperation` ended. (A `Resolver` has `ResolutionOutcome`, a wait in asyncio `aio.WaitOutcome`.)"""

# The states of an operation: integers inside, because they are compared at every step; words outside.
# 0 is what C makes of an operation whose `__init__` has not been called.
PENDING: Final = 1
COMPLETED: Final = 2
EXPIRED: Final = 3
CANCELLED: Final = 4
LEFT_BEHIND: Final = 5  # it was pending at a fork, and this is the child: it ends in the parent
OUTCOMES: Final[tuple[Outcome | None, ...]] = (None, None, "completed", "expired", "cancelled", "cancelled")
_PENDING = PENDING  # C constants when compiled
_COMPLETED = COMPLETED
_LEFT_BEHIND = LEFT_BEHIND

# Results of submitting an operation, see `_dop_adopt`.
ADOPTED: Final = 0
HAD_HOME: Final = 1  # it was submitted before
ENDED_ALONE: Final = 2  # it ended before it was submitted
_ADOPTED = ADOPTED
_HAD_HOME = HAD_HOME
_ENDED_ALONE = ENDED_ALONE

LONGEST: Final = 100 * 366 * 86_400.0
"""Seconds: a hundred years, which is as far as timers promise to work (law T2)."""
_LONGEST = LONGEST

_LOCKED = LOCKED  # whether lock 2 is a lock: see the ground rules
_UNSUBMITTED = mutex("an operation", PurgatoryError)  # lock 2 of every operation that is in no purgatory yet


class Home:
    """The methods that an operation calls on its purgatory. Implemented by purgatories."""

    __slots__ = ()

    def _end(self, operation: DelayedOperation, state: int, trying: bool) -> bool:
        raise NotImplementedError

    def _report(self, error: Exception, operation: DelayedOperation) -> None:
        raise NotImplementedError


class DelayedOperation(Locked):
    """An operation that waits for a condition, but no longer than its `timeout`. Subclass it.

    Override `try_complete`, and `on_complete` and `on_expiration` as needed. Then submit it once, to one purgatory,
    with `Purgatory.try_complete_else_watch`. A subclass with an `__init__` of its own calls this one.

    The contract is that of Kafka's `DelayedOperation`: `on_complete` runs exactly once, whether the operation
    completed or expired, and `on_expiration` runs after it when it expired.

    Examples:
        >>> class Reply(DelayedOperation):
        ...     def try_complete(self):
        ...         return False
        ...     def on_expiration(self):
        ...         print("no reply")
        >>> timer = ManualTimer()
        >>> Purgatory("replies", timer).try_complete_else_watch(Reply(timeout=5.0), ["request 17"])
        False
        >>> timer.advance(5.0)
        no reply
        1
    """

    # Long names: subclasses have their own `_state` and `_home`, and must not tread on ours.
    __slots__ = (
        "__weakref__",
        "_dop_again",
        "_dop_handle",
        "_dop_home",
        "_dop_many",
        "_dop_state",
        "_dop_task",
        "_dop_timeout",
        "_dop_trying",
        "_dop_watches",
    )
    __signature__ = CLASS_SIGNATURE

    def __init__(self, timeout: float | timedelta, *, lock: ReentrantLock | None = None) -> None:
        """Set `timeout`, in seconds from the submission. With zero or less the operation expires when the timer runs.

        `lock` is held while the operation's own code runs. It must be reentrant, and several operations may share it:
        for instance the lock of the group or session whose state they read. Default: a `threading.RLock` of its own.

        Raises ValueError if `timeout` is NaN, infinite or above a hundred years: an operation that can never expire
        is not a delayed operation. Raises TypeError for a value that is not a time, or a lock that is not reentrant.
        """
        if self._dop_is_ready():
            raise TypeError(f"{self!r}: its __init__ has been called before")
        self._dop_timeout: float = _seconds(timeout)
        begin(self, lock)
        self._dop_home: Home | None = None
        self._dop_watches = -1  # the first of its watches, see directory.py; -1 for none
        self._dop_many = False  # whether it was submitted with several keys
        self._dop_handle = 0  # of its timer, where that is one of ours; 0 for none
        self._dop_task: Stoppable | None = None  # its timer, where that is another
        self._dop_trying = False
        self._dop_again = False
        self._dop_state = _PENDING  # the last: without it, this has not been called

    # -- to override

    def try_complete(self) -> bool:
        """Test the condition. If it holds, `return self.force_complete()`; else return False.

        Called with the operation's lock held, never by two threads at once: by the submitter (twice), then
        by every `check_and_complete` on one of its keys; never after the operation has ended or was cancelled.
        If it returns True without calling `force_complete`, the operation completes too. For errors see `Purgatory`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say when it is complete: define try_complete()")

    def on_complete(self) -> None:
        """Handle the end (respond to the client, say). Runs once, with the lock held, also if the operation expired."""

    def on_expiration(self) -> None:
        """Handle the expiration (count it, say). Runs once, after `on_complete`, if the operation expired."""

    # -- to call

    def force_complete(self) -> bool:
        """Complete the operation now, whatever its condition: run `on_complete`. Return True exactly once.

        When this returns True, the operation is off all of its keys, its timer is stopped, and `on_complete` has run in
        this thread. (One exception: inside *another* operation's code, while another thread holds this operation's
        lock, `on_complete` runs a little later, when this thread has left the other operation. See nesting.py.) It
        returns False if the operation had ended before, and inside a `try_complete` during which it was cancelled.
        Errors of `on_complete` reach the caller. O(its keys). Kafka: `forceComplete`.
        """
        if self._dop_state == _LEFT_BEHIND:
            return False  # without its lock, which a thread of the parent's may have held
        if not enter_at_any_depth(self):
            if not self._dop_end(_COMPLETED, False):
                return False
            defer(_complete_later, self)
            return True
        try:
            if not self._dop_end(_COMPLETED, self._dop_trying):
                return False
            refuse_async(self.on_complete(), self, "on_complete")  # type: ignore[func-returns-value]
            return True
        finally:
            leave(self)

    @property
    def is_completed(self) -> bool:
        """Whether the operation has completed or expired, as in Kafka; `outcome` tells which.

        False if it was cancelled: the caller that cancelled it may still complete it.
        """
        return OUTCOMES[self._dop_state] in ("completed", "expired")

    @property
    def outcome(self) -> Outcome | None:
        """How the operation ended: "completed", "expired" or "cancelled"; None while it is pending."""
        return OUTCOMES[self._dop_state]

    @property
    def timeout(self) -> float:
        """The operation's time-out, in seconds."""
        return self._dop_timeout

    @property
    def lock(self) -> ReentrantLock:
        """The lock that is held while the operation's own code runs."""
        return whole_lock(self)

    def __repr__(self) -> str:
        if not self._dop_is_ready():
            return f"<{type(self).__name__} not initialised>"
        return f"<{type(self).__name__} {self.outcome or 'pending'}, timeout={self._dop_timeout:g}s>"

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: it is one wait, in one process")

    # -- for purgatories

    def _dop_is_ready(self) -> bool:
        """Return whether `__init__` has been called."""
        if cython.compiled:
            return self._dop_state != 0
        return hasattr(self, "_dop_state")

    def _dop_adopt(self, home: Home, watches: int, many: bool) -> int:
        """Bind the operation to a purgatory and return ADOPTED; else return ENDED_ALONE (it has ended) or HAD_HOME."""
        if _LOCKED:
            with _UNSUBMITTED:
                return self._dop_move_in(home, watches, many)
        return self._dop_move_in(home, watches, many)

    def _dop_move_in(self, home: Home, watches: int, many: bool) -> int:
        if self._dop_home is not None:
            return _HAD_HOME
        self._dop_home = home
        if self._dop_state != _PENDING:
            return _ENDED_ALONE
        self._dop_watches = watches
        self._dop_many = many
        return _ADOPTED

    def _dop_end(self, state: int, trying: bool) -> bool:
        """Change from pending to `state`, and leave all keys. Return True for the one caller that succeeds."""
        home = self._dop_home
        if home is None:
            if _LOCKED:
                with _UNSUBMITTED:
                    home = self._dop_home
                    if home is None:
                        return self._dop_end_alone(state)
            else:
                return self._dop_end_alone(state)
        return home._end(self, state, trying)

    def _dop_end_alone(self, state: int) -> bool:
        if self._dop_state != _PENDING:
            return False
        self._dop_state = state
        return True


def _complete_later(operation: DelayedOperation) -> None:
    """Finish a `force_complete` that could not acquire the lock: it set the state, and `on_complete` runs now."""
    try:
        enter_at_any_depth(operation)  # waits: this thread is in no operation any more
        try:
            refuse_async(operation.on_complete(), operation, "on_complete")  # type: ignore[func-returns-value]
        finally:
            leave(operation)
    except Exception as error:  # noqa: BLE001  reported
        home = operation._dop_home
        if home is None:
            log(error, "purgatory", "%s: on_complete raised", operation)
        else:
            home._report(error, operation)


def refuse_async(result: object, operation: DelayedOperation, method: str) -> bool:
    """Raise TypeError if a method of an operation returned a coroutine, which would never be awaited."""
    if is_coroutine(result):
        coroutine: Any = result
        coroutine.close()  # avoids the warning that it was never awaited
        raise TypeError(
            f"{type(operation).__qualname__}.{method} must be a plain function, not async: it would never be awaited; "
            "to wait in a coroutine, use abeyant.aio.Purgatory"
        )
    return True


def _seconds(timeout: float | timedelta) -> float:
    seconds = timeout if type(timeout) is float else as_float(timeout, "timeout")
    if not seconds <= _LONGEST:  # NaN is not
        raise ValueError(f"timeout must be a number of seconds up to a hundred years, not {timeout!r}")
    return seconds if seconds > 0 else 0.0


def _in_child() -> None:
    global _UNSUBMITTED
    _UNSUBMITTED = mutex("an operation", PurgatoryError)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
