# cython: nonecheck=True, binding=False, embedsignature=True, embedsignature.format=clinic
"""An operation's states in a purgatory: timed, tried, then completed, expired or cancelled, once.

Ground rules are at the head of operation.py. In short: the directory's lock guards the lists, the counts and the
state of every operation in here; no user code runs under it, keys' `__hash__` and `__eq__` included; it is the
last lock that a thread takes. Call the methods here with this lock free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from abeyant.mutex import LOCKED
from abeyant.purgatory.directory import Directory
from abeyant.purgatory.nesting import defer, enter, leave
from abeyant.purgatory.operation import (
    CANCELLED,
    COMPLETED,
    EXPIRED,
    PENDING,
    DelayedOperation,
    Home,
    refuse_async,
)
from abeyant.reporting import report
from abeyant.timer.base import at_any_rate
from abeyant.timer.units import whole_nanoseconds

if TYPE_CHECKING:
    from abeyant.purgatory import ports

_PENDING = PENDING  # C constants when compiled
_COMPLETED = COMPLETED
_EXPIRED = EXPIRED
_CANCELLED = CANCELLED
_LOCKED = LOCKED
ROUNDS = 8  # maximum repeats of a try that checked its own key: one that always does would never end
_ROUNDS = ROUNDS


class Life(Home):
    """A base class of purgatories: runs operations from the start of their timer to their end. `Room` submits them."""

    __slots__ = (
        "_cancelled", "_completed", "_delayed", "_directory", "_errors", "_expired", "_on_error", "_quick_timer",
        "_timer",
    )  # fmt: skip

    _directory: Directory
    _timer: Any
    _quick_timer: Any
    _on_error: Callable[[Exception, Any], object] | None
    _delayed: int
    _completed: int
    _expired: int
    _cancelled: int
    _errors: int

    # -- its timer

    def _start_timer(self, operation: DelayedOperation) -> None:
        handle = 0
        task = None
        try:
            if self._quick_timer is not None:
                handle = self._quick_timer._start_item((_EXPIRE, operation), whole_nanoseconds(operation._dop_timeout))
            else:
                task = self._timer.call_later(operation._dop_timeout, _EXPIRE, operation)
        except Exception:
            if self._end(operation, _CANCELLED, False):
                raise
            return  # it ended meanwhile: it needs no timer
        self._directory.lock()
        surplus = operation._dop_state != _PENDING
        if not surplus:
            operation._dop_handle = handle
            operation._dop_task = task
            self._delayed += 1
        self._directory.unlock()
        if surplus:
            self._stop(operation, handle, task)

    def _stop(self, operation: DelayedOperation, handle: int, task: ports.Stoppable | None) -> None:
        """Stop an ended operation's timer. Raise nothing, as `on_complete` still has to run (P3)."""
        if handle and not _LOCKED:
            self._quick_timer._stop_item(handle)
        elif handle or task is not None:
            try:
                if task is not None:
                    task.cancel()
                else:
                    self._quick_timer._stop_item(handle)
            except Exception as error:  # noqa: BLE001  reported
                self._report(error, operation)

    # -- the tries

    def _try(self, operation: DelayedOperation) -> bool:
        """Try to complete an operation, for a check. Return whether this completed it. Report errors of its code."""
        for _ in range(_ROUNDS):
            if not enter(operation):
                self._try_later(operation)
                return False
            try:
                try:
                    return self._attempt(operation)
                finally:
                    leave(operation)
            except Exception as error:  # noqa: BLE001  reported
                self._report(error, operation)
            if not operation._dop_again or operation._dop_state != _PENDING:
                break  # else it raised after it had checked its own key: that check is not to be missed (P2)
        return operation._dop_state == _COMPLETED  # then it was on_complete that raised

    def _try_later(self, operation: DelayedOperation) -> None:
        """Try to complete an operation later, once this thread runs no operation's code any more."""
        defer(self._try, operation)

    def _attempt(self, operation: DelayedOperation) -> bool:
        """Call `try_complete`, with the operation's lock held. Return whether this completed it."""
        if operation._dop_state != _PENDING:
            return False
        if operation._dop_trying:  # a check from inside its own try: the try is repeated, see operation.py
            operation._dop_again = True
            return False
        operation._dop_trying = True
        try:
            rounds = _ROUNDS
            while True:
                operation._dop_again = False
                answer: Any = operation.try_complete()
                if answer is True or answer is False:
                    done = answer
                else:
                    refuse_async(answer, operation, "try_complete")
                    done = bool(answer)
                rounds -= 1
                if done or not operation._dop_again or operation._dop_state != _PENDING or rounds == 0:
                    break
        finally:
            operation._dop_trying = False
        if not done:
            return False
        if operation._dop_state == _PENDING:
            return operation.force_complete()
        return operation._dop_state == _COMPLETED

    # -- the ways out

    def _expire(self, operation: DelayedOperation) -> bool:
        """Expire an operation whose timer has fired. Return False if it had ended, or if this is deferred."""
        return self._let_expire(operation, True)

    def _expire_early(self, operation: DelayedOperation) -> bool:
        """Expire an operation whose timer still runs. Return False if it had ended, or if this is deferred."""
        return self._let_expire(operation, False)

    def _let_expire(self, operation: DelayedOperation, fired: bool) -> bool:
        if not enter(operation):
            defer(self._expire if fired else self._expire_early, operation)
            return False
        failures: list[Exception] = []
        try:
            try:
                if not self._pass(operation, _EXPIRED, False, fired):
                    return False
                try:
                    refuse_async(operation.on_complete(), operation, "on_complete")  # type: ignore[func-returns-value]
                except Exception as error:  # noqa: BLE001  reported
                    failures.append(error)
                finally:
                    refuse_async(operation.on_expiration(), operation, "on_expiration")  # type: ignore[func-returns-value]
            except Exception as error:  # noqa: BLE001  reported
                failures.append(error)
            finally:
                leave(operation)
        finally:
            while failures:  # popped, for a frame must not hold the exception that holds the frame
                self._report(failures.pop(0), operation)
        return True

    def _end(self, operation: DelayedOperation, state: int, trying: bool) -> bool:
        """End an operation: set its state, take it off every key, stop its timer. Return whether this call did.

        Only a pending operation can end. A cancelled operation can end once more, when the caller that cancelled it
        completes it, but not by a `try_complete` that was running when it was cancelled (`trying`).
        """
        return self._pass(operation, state, trying, False)

    def _pass(self, operation: DelayedOperation, state: int, trying: bool, fired: bool) -> bool:
        """End an operation as `_end` does, but do not stop a timer that has `fired`: some timers refuse this."""
        spent: list[Any] | None = [] if operation._dop_many else None  # made here: nothing is allocated under the lock
        self._directory.lock()
        earlier = operation._dop_state
        if earlier != _PENDING and (earlier != _CANCELLED or state != _COMPLETED or trying):
            self._directory.unlock()
            return False
        operation._dop_state = state
        key = self._directory.leave(operation, spent)
        handle = operation._dop_handle
        operation._dop_handle = 0
        task = operation._dop_task
        operation._dop_task = None
        if handle or task is not None:
            self._delayed -= 1
        if state == _COMPLETED:
            self._completed += 1
        elif state == _EXPIRED:
            self._expired += 1
        else:
            self._cancelled += 1
        self._directory.unlock()
        if not fired:
            self._stop(operation, handle, task)
        del key  # not before the lock is free
        return True

    def _report(self, error: Exception, operation: DelayedOperation) -> None:
        self._directory.lock()
        self._errors += 1
        self._directory.unlock()
        report(error, self, operation, "purgatory", self._on_error)


def expire(operation: DelayedOperation) -> None:
    """Expire an operation. The timers of all operations call this one function object."""
    home: Any = operation._dop_home
    home._expire(operation)


_EXPIRE = at_any_rate(expire)  # a C global when compiled
