# cython: nonecheck=True, binding=False, embedsignature=True, embedsignature.format=clinic
"""The implementation of `Purgatory`: submitting, checking, cancelling, and counts.

How operations end is in life.py. `Purgatory` adds a type parameter, which an extension class cannot have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.forking import reset_in_child
from abeyant.purgatory.directory import Directory
from abeyant.purgatory.errors import OperationReusedError, PurgatoryClosedError
from abeyant.purgatory.life import ROUNDS, Life
from abeyant.purgatory.nesting import enter, release, settle
from abeyant.purgatory.operation import (
    ADOPTED,
    CANCELLED,
    COMPLETED,
    ENDED_ALONE,
    EXPIRED,
    HAD_HOME,
    LEFT_BEHIND,
    PENDING,
    DelayedOperation,
)
from abeyant.signature import CLASS_SIGNATURE, trim_getters
from abeyant.timer.base import check_callback
from abeyant.timer.manual import ManualTimer
from abeyant.timer.system import SystemTimer

if TYPE_CHECKING:
    from abeyant.purgatory import ports

_PENDING = PENDING  # C constants when compiled
_COMPLETED = COMPLETED
_EXPIRED = EXPIRED
_CANCELLED = CANCELLED
_LEFT_BEHIND = LEFT_BEHIND
_ADOPTED = ADOPTED
_HAD_HOME = HAD_HOME
_ENDED_ALONE = ENDED_ALONE
_ROUNDS = ROUNDS


class PurgatoryStats(NamedTuple):
    """One consistent reading of a purgatory's counts: Kafka's purgatory metrics and some more.

    `watched`, `watched_keys` and `delayed` are current; the other counts are sums since the purgatory was made.
    """

    watched: int
    """Current watches, pairs of operation and key: an operation counts once per key. (Kafka: `PurgatorySize`.)"""
    watched_keys: int
    """Keys on which at least one operation waits."""
    delayed: int
    """Operations that are pending now: their timers run. (Kafka: `NumDelayedOperations`; our metric: `pending`.)"""
    completed: int
    """Operations that completed, also if they never had to wait."""
    expired: int
    """Operations that expired at their deadline, or by `close("expire")`."""
    cancelled: int
    """Operations that were cancelled: taken out and returned to the caller, without a call of `on_complete`."""
    errors: int
    """Errors from operations' own code that were reported to `on_error`, or logged."""

    @property
    def pending(self) -> int:
        """The same as `delayed`, under the name of our metric."""
        return self.delayed


trim_getters(PurgatoryStats.pending)


class Room(Life):
    """The implementation of `Purgatory`, which is documented there."""

    __slots__ = ("__weakref__", "_name")
    __signature__ = CLASS_SIGNATURE

    def __init__(
        self, name: str, timer: ports.Timer | None = None, *, on_error: Callable[[Exception, Any], object] | None = None
    ) -> None:
        """Create a purgatory. `name` is for people; `timer` is a timer of this package, or has the same `call_later`.

        `on_error(error, operation)` is called with errors of operations' code that reach no caller. Without `on_error`
        they are logged.
        """
        if self._is_made():
            raise TypeError(f"{self!r}: its __init__ has been called before")
        if not isinstance(name, str):
            raise TypeError(f'a purgatory needs a name and a timer, as in Purgatory("produce", timer), not {name!r}')
        if isinstance(timer, type) or not callable(getattr(timer, "call_later", None)):
            raise TypeError(f"timer must be a SystemTimer, or have a call_later(), not {timer!r}")
        if on_error is not None:
            check_callback(on_error, "on_error")
        self._name = name
        self._timer: Any = timer
        # Our own timers, and no subclass that may have its own idea of `call_later`, are called from C.
        self._quick_timer: Any = timer if type(timer) in (SystemTimer, ManualTimer) else None
        self._on_error = on_error
        self._keep_nothing()
        reset_in_child(self)

    def _keep_nothing(self) -> None:
        self._directory = Directory()
        self._delayed = 0
        self._completed = 0
        self._expired = 0
        self._cancelled = 0
        self._errors = 0

    # -- operations

    def try_complete_else_watch(self, operation: Any, keys: Iterable[Hashable]) -> bool:
        """Try to complete `operation` now; else have it wait on `keys`. Return whether it is completed.

        The operation is tried, put on the lists of all keys, and tried again: the second try sees a change before
        it, and the check for a later change finds the operation on its list (law P2). Then its timer starts. A key
        that is given twice counts once. O(keys), and two calls of `try_complete`.

        False means that the operation was accepted. An Exception that `try_complete` raises reaches the caller, but
        the operation is accepted all the same (P6): it may still complete, it will expire, `cancel` takes it back.
        It is *not* accepted, but taken out again, if another exception leaves `try_complete` (KeyboardInterrupt),
        if a key's comparison raises, or if the timer refuses the operation (that error reaches the caller).

        Raises PurgatoryClosedError after `close`; OperationReusedError for an operation submitted before;
        ValueError without keys, even if the operation would complete at once (whether a mistake is found should
        not depend on timing); TypeError for a str or bytes as `keys`, for an unhashable key, and if `operation`
        is not a DelayedOperation.
        """
        if not isinstance(operation, DelayedOperation):
            raise TypeError(f"expected a DelayedOperation, not {operation!r}")
        if isinstance(keys, (str, bytes)):
            raise TypeError(f"keys must be a collection of keys: pass [{keys!r}] for this one")
        wanted = operation
        try:
            listed = tuple(keys)
        except TypeError as error:
            if hasattr(keys, "__iter__"):
                raise
            raise TypeError(f"keys must be a collection of keys: pass [{keys!r}] for this one") from error
        if not listed:
            raise ValueError(f"{operation!r} must wait on at least one key, or nothing could complete it")
        if not wanted._dop_is_ready():
            raise TypeError(f"{operation!r}: its __init__ must call super().__init__(timeout) before it is submitted")
        watches = self._directory.prepare(listed)
        closed = self._directory.closed
        adopted = _HAD_HOME if closed else wanted._dop_adopt(self, watches, len(listed) > 1)
        if adopted != _ADOPTED:
            self._directory.lock()
            try:
                self._directory.discard(watches)
                if adopted == _ENDED_ALONE:
                    self._completed += 1
            finally:
                self._directory.unlock()
            if adopted == _ENDED_ALONE:
                return True
            if closed:
                raise self._refusal(wanted)
            raise OperationReusedError(
                f"{operation!r} was submitted before, to {wanted._dop_home!r}; make a new operation for every wait"
            )
        try:
            errors = self._submit(wanted, listed)
        finally:
            settle()
        if errors is not None:
            raise errors.pop()  # popped: a frame must not hold the exception that holds the frame
        return wanted._dop_state in (_COMPLETED, _EXPIRED)

    def check_and_complete(self, key: Hashable) -> int:
        """Try every operation that waits on `key`, in order of arrival; return how many this completed.

        Operations that join during the call are not tried: they test their condition after joining. An error of
        one operation is reported and harms no other; KeyboardInterrupt and its like end the call, and the operations
        not yet tried stay watched and timed. O(operations on the key); a key without operations costs one look-up.

        If this is called inside an operation's code, operations whose lock another thread holds are tried as soon as
        this thread has left that code, and do not count in the result. Kafka: `checkAndComplete`.
        """
        found = self._directory.on(key)
        if found is None:
            return 0
        if type(found) is not list:
            return 1 if self._try(found) else 0  # an int of a compiled bool, too
        completed = 0
        for position in range(len(found)):
            operation = found[position]
            found[position] = None  # not to be kept alive while the others are tried
            if operation._dop_state == _PENDING and self._try(operation):
                completed += 1
        return completed

    def _cancel(self, operation: Any) -> bool:
        """Cancel an operation. Return whether it was pending here."""
        if not isinstance(operation, DelayedOperation):
            raise TypeError(f"expected a DelayedOperation, not {operation!r}")
        wanted = operation
        return wanted._dop_home is self and self._end(wanted, _CANCELLED, False)

    def _cancel_for_key(self, key: Hashable) -> list[Any]:
        found = self._directory.on(key)
        if found is None:
            return []
        several = found if type(found) is list else [found]
        return [operation for operation in several if self._end(operation, _CANCELLED, False)]

    def _close(self, expiring: bool) -> list[Any]:
        """Refuse new operations and end the pending ones. Return the operations that this ended."""
        self._directory.lock()
        try:
            if self._directory.closed:
                return []
            self._directory.close()
            pending = self._directory.operations()
        finally:
            self._directory.unlock()
        ended = []
        interruption: BaseException | None = None
        for operation in pending:
            try:
                if self._expire_early(operation) if expiring else self._end(operation, _CANCELLED, False):
                    ended.append(operation)
            except BaseException as raised:  # noqa: BLE001  the others must end all the same; raised again below
                interruption = raised
        if interruption is not None:
            try:
                raise interruption
            finally:
                del interruption
        return ended

    # -- introspection

    @property
    def name(self) -> str:
        """The purgatory's name."""
        return self._name

    @property
    def closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._directory.closed

    @property
    def watched(self) -> int:
        """The exact number of watches, pairs of operation and key: an operation counts once for each key. O(1)."""
        return self._directory.watches

    @property
    def watched_keys(self) -> int:
        """The exact number of keys on which at least one operation waits. O(1)."""
        return self._directory.keys

    @property
    def delayed(self) -> int:
        """The exact number of pending operations, by their timers (Kafka: `NumDelayedOperations`). O(1)."""
        return self._delayed

    def pending(self) -> list[Any]:
        """Return the pending operations, in no particular order; `delayed` counts them. O(watched), under the lock."""
        self._directory.lock()
        try:
            return self._directory.operations()
        finally:
            self._directory.unlock()

    def stats(self) -> PurgatoryStats:
        """Return all counts, read at one moment. O(1)."""
        self._directory.lock()
        try:
            watched = self._directory.watches
            watched_keys = self._directory.keys
            delayed = self._delayed
            completed = self._completed
            expired = self._expired
            cancelled = self._cancelled
            errors = self._errors
        finally:
            self._directory.unlock()
        return PurgatoryStats(watched, watched_keys, delayed, completed, expired, cancelled, errors)

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: its operations belong to one purgatory only")

    def _is_made(self) -> bool:
        """Return whether `__init__` has been called."""
        return self._directory is not None if cython.compiled else hasattr(self, "_directory")

    def __repr__(self) -> str:
        if self.closed:
            return f"<Purgatory {self._name!r}, closed>"
        waiting = f"{self.delayed} delayed, {self.watched} watched on {self.watched_keys} keys"
        return f"<Purgatory {self._name!r}: {waiting}>"

    def _check(self) -> None:
        """Raise AssertionError if an invariant does not hold. For tests; O(watched), with the lock held."""
        self._directory.lock()
        try:
            self._directory.check()
            timed = sum(
                [
                    operation._dop_handle != 0 or operation._dop_task is not None
                    for operation in self._directory.operations()
                ]
            )
            assert timed == self._delayed, f"{timed} operations are timed, but {self._delayed} were counted"
        finally:
            self._directory.unlock()

    def _reset_in_child(self) -> object:
        """Empty the purgatory in a forked child: pending operations end in the parent, and only there (P1)."""
        inherited = self._directory
        for operation in inherited.everyone():
            if operation._dop_home is self and operation._dop_state == _PENDING:
                operation._dop_state = _LEFT_BEHIND
                operation._dop_handle = 0
                operation._dop_task = None
                operation._dop_watches = -1
        closed = inherited.closed
        self._keep_nothing()
        if closed:
            self._directory.close()
        return inherited

    # -- submission

    def _submit(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> list[Exception] | None:
        """Try, watch, try again, start the timer. Return the last error that the tries raised, in a list, or None.

        Any other error is raised, after the operation was taken out again: it is never watched without a timer.
        """
        accepted = False
        errors: list[Exception] | None = None
        directory = self._directory
        try:
            if enter(operation):
                try:
                    errors = self._attempt_catching(operation, errors)
                    if self._directory is not directory and operation._dop_state == _PENDING:
                        operation._dop_state = _LEFT_BEHIND  # it forked, and this is the child
                        operation._dop_watches = -1
                    if operation._dop_state == _PENDING:
                        self._watch(operation, keys)
                        errors = self._attempt_catching(operation, errors)
                finally:
                    release(operation)
            else:
                # Inside another operation, with this one's (shared) lock in another thread's hands. Watch first,
                # so that nothing is missed, and try as soon as this thread is out.
                self._watch(operation, keys)
                self._try_later(operation)
            if operation._dop_state == _PENDING:
                self._start_timer(operation)
            accepted = True
        finally:
            if not accepted:
                self._end(operation, _CANCELLED, False)
        return errors

    def _attempt_catching(self, operation: DelayedOperation, errors: list[Exception] | None) -> list[Exception] | None:
        try:
            for _ in range(_ROUNDS):
                try:
                    self._attempt(operation)
                    break
                except Exception as error:  # noqa: BLE001  for the submitter, once the operation is safely in
                    if errors is not None and errors[0] is not error and error.__context__ is None:
                        error.__context__ = errors[0]  # the try's before; one traceback shows both
                    errors = [error]
                if not operation._dop_again or operation._dop_state != _PENDING:
                    break  # else it raised after it had checked its own key: that check is not to be missed (P2)
            return errors
        finally:
            del errors  # a frame must not hold the exception that holds the frame

    def _watch(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> None:
        if not self._directory.join(operation, keys):
            raise self._refusal(operation)

    def _refusal(self, operation: DelayedOperation) -> PurgatoryClosedError:
        return PurgatoryClosedError(f"{self!r} does not accept {operation!r}")
