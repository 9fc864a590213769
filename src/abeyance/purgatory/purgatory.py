"""Where operations wait: watched by key for their condition, timed for their deadline.

Ground rules are at the head of operation.py. In short: `_lock` guards the lists, the counts and the state
of every operation in here; no code of the user's runs under it, keys' `__hash__` and `__eq__` included; it
is the last lock that anybody takes. Methods that want it held say so, the others want it free.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from types import TracebackType
from typing import Final, Generic, Literal, Self, TypeVar, cast

from abeyance.purgatory.directory import BATCH, Directory
from abeyance.purgatory.errors import PurgatoryClosedError
from abeyance.purgatory.invariants import check
from abeyance.purgatory.lists_lock import ListsLock
from abeyance.purgatory.nesting import NESTING
from abeyance.purgatory.operation import DelayedOperation, logger
from abeyance.purgatory.outcome import CANCELLED, COMPLETED, EXPIRED, PENDING
from abeyance.purgatory.ports import Stoppable, Timer
from abeyance.purgatory.stats import PurgatoryStats
from abeyance.purgatory.watch import Watch

OperationT = TypeVar("OperationT", bound=DelayedOperation)

ROUNDS: Final = 8
"""How often a try is repeated because it checked its own key. One that always does would go round for ever."""


class Purgatory(Generic[OperationT]):
    """Keeps delayed operations until they complete or expire. Kafka's `DelayedOperationPurgatory`.

    Submit with `try_complete_else_watch`; after a change that may complete operations waiting on a key,
    call `check_and_complete(key)`. Safe from any thread and from inside operations. Costs no thread: expiry
    runs where the timer runs its callbacks, and one timer serves any number of purgatories.

    Call `check_and_complete` without locks of your own, unless they are the operations' own shared lock: it
    waits for the lock of each operation on the key, whose `try_complete` may be waiting for yours.

    Errors: what an operation's code raises in the submitter's own call reaches the submitter. In every
    other case `on_error(error, operation)` is called, or else the error is logged ("abeyance.purgatory").
    An operation whose `try_complete` raises stays watched and timed.

    Close it before its timer: a timer that is closed under it expires nothing any more.
    """

    def __init__(
        self,
        name: str,
        timer: Timer,
        *,
        on_error: Callable[[Exception, OperationT], object] | None = None,
    ) -> None:
        if on_error is not None and not callable(on_error):
            raise TypeError(f"on_error must be callable, not {on_error!r}")
        self._name = name
        self._timer = timer
        self._on_error = on_error
        self._lock = ListsLock()
        self._directory = Directory(self._lock)
        self._delayed = 0
        self._completed = 0
        self._expired = 0
        self._cancelled = 0
        self._errors = 0

    # -- for those who wait

    def try_complete_else_watch(self, operation: OperationT, keys: Iterable[Hashable]) -> bool:
        """Try to complete `operation` now; else let it wait on `keys`. Returns whether it is completed.

        It is tried, put on the lists of all keys, and tried again: a change before the second try is seen
        by it, a change after it finds the operation on its list (law P2). Then its timer starts. A key that
        is given twice counts once. O(keys), and two calls of `try_complete`, which may be costly: few keys
        are tried sooner.

        Returns False with the operation accepted. What `try_complete` raises reaches the caller with the
        operation accepted all the same (P6): it may still complete, it will expire, `cancel` takes it back.
        It is *not* accepted, but taken out again, when an exception that is no Exception comes out of it
        (KeyboardInterrupt), when a key's comparison raises, or when the timer refuses it (that error
        reaches the caller).

        Raises PurgatoryClosedError after `close`; OperationReusedError for an operation submitted before;
        ValueError without keys, even if it would complete at once (a mistake should not depend on the
        weather); TypeError for a str or bytes as `keys`, an unhashable key, or what is no DelayedOperation.
        """
        watches = _watches(operation, keys)
        if self._directory.closed:
            raise self._refusal(operation)
        operation._adopt(cast("Purgatory[DelayedOperation]", self))
        errors: list[Exception] = []  # emptied by `pop`: a frame must not hold the exception that holds the frame
        try:
            self._submit(operation, watches, errors)
        finally:
            NESTING.settle()
        if errors:
            raise errors.pop()
        return operation.is_completed

    def check_and_complete(self, key: Hashable) -> int:
        """Try every operation that waits on `key`, in order of arrival; returns how many this completed.

        Operations that join during the call are not its business: they look for themselves. One that raises
        is reported and harms no other; KeyboardInterrupt and its like end the call, and what it had not
        come to stays watched and timed. O(operations on the key); a key nobody waits on costs one look-up.

        From inside an operation's code, what would have to wait for another thread's operation is tried as
        soon as this thread is out again, and does not count here. Kafka: `checkAndComplete`.
        """
        watchers = self._directory.find(key, hash(key))
        if watchers is None:
            return 0
        completed = 0
        behind: Watch | None = None
        before = watchers.issued
        while True:
            with self._lock:
                batch = watchers.batch(behind, before, BATCH)
            for behind in batch:
                if behind.operation._dop_state == PENDING and self._try(behind.operation):
                    completed += 1
            if len(batch) < BATCH:
                return completed

    def cancel(self, operation: OperationT) -> bool:
        """Take `operation` out, without an end; True exactly when it was pending here. O(its keys).

        It leaves its keys and the timer. None of its code runs; it is not completed, and `force_complete`
        is the caller's to call, once, or not.
        """
        if operation._dop_home is not self:
            return False
        return self._end(operation, CANCELLED, False)

    def cancel_for_key(self, key: Hashable) -> list[OperationT]:
        """Take out the operations that wait on `key`, as `cancel` does, and hand them back in order of arrival.

        For when the key goes away, a partition that moves to another broker, say: answer each with
        `force_complete()`, or let it go. They leave their other keys and the timer too. (Kafka:
        `cancelForKey`.)
        """
        cancelled: list[OperationT] = []
        watchers = self._directory.find(key, hash(key))
        if watchers is None:
            return cancelled
        behind: Watch | None = None
        before = watchers.issued
        while True:
            with self._lock:
                batch = watchers.batch(behind, before, BATCH)
            for behind in batch:
                operation = cast("OperationT", behind.operation)
                if self._end(operation, CANCELLED, False):
                    cancelled.append(operation)
            if len(batch) < BATCH:
                return cancelled

    def close(self, how: Literal["expire", "cancel"] = "expire") -> list[OperationT]:
        """Accept nothing more, and end what is pending; returns the operations that this ended. O(pending).

        "expire" ends each as its deadline would, `on_complete` and `on_expiration` included, here and now:
        nobody is left waiting for an answer. "cancel" hands them back as `cancel` does, and none of their
        code runs. A second call returns an empty list. The timer stays open.
        """
        if how not in ("expire", "cancel"):
            raise ValueError(f'how must be "expire" or "cancel", not {how!r}')
        with self._lock:
            if self._directory.closed:
                return []
            self._directory.closed = True
            pending = self._directory.operations()
        ended: list[OperationT] = []
        interruption: BaseException | None = None
        for operation in pending:
            try:
                if self._end(operation, CANCELLED, False) if how == "cancel" else self._expire(operation):
                    ended.append(cast("OperationT", operation))
            except BaseException as raised:  # noqa: BLE001  the others must end all the same; raised again below
                interruption = raised
        if interruption is not None:
            try:
                raise interruption
            finally:
                del interruption
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- for those who look

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._directory.closed

    @property
    def watched(self) -> int:
        """Watches, exactly: an operation counts once for each of its keys. O(1)."""
        return self._directory.watches

    @property
    def watched_keys(self) -> int:
        """Keys on which at least one operation waits, exactly. O(1)."""
        return self._directory.keys

    @property
    def delayed(self) -> int:
        """Operations whose timer runs, exactly. O(1)."""
        return self._delayed

    def stats(self) -> PurgatoryStats:
        """All counts, read at one moment. O(1)."""
        with self._lock:
            return PurgatoryStats(
                watched=self._directory.watches,
                watched_keys=self._directory.keys,
                delayed=self._delayed,
                completed=self._completed,
                expired=self._expired,
                cancelled=self._cancelled,
                errors=self._errors,
            )

    def __repr__(self) -> str:
        if self._directory.closed:
            return f"<Purgatory {self._name!r}, closed>"
        waiting = f"{self.delayed} delayed, {self.watched} watched on {self.watched_keys} keys"
        return f"<Purgatory {self._name!r}: {waiting}>"

    def _check(self) -> None:
        """Raise AssertionError where an invariant does not hold. For tests; O(watched), under the lock."""
        with self._lock:
            check(self._directory)
            timed = sum(operation._dop_task is not None for operation in self._directory.operations())
            assert timed == self._delayed, f"{timed} operations are timed, but {self._delayed} were counted"

    # -- the way in

    def _submit(self, operation: DelayedOperation, watches: list[Watch], errors: list[Exception]) -> None:
        """Try, watch, try again, start the timer. What the tries raise goes to `errors`, one at most.

        Whatever else goes wrong is raised with the operation taken out again: never watched without a timer.
        """
        accepted = False
        try:
            if NESTING.enter(operation._dop_lock):
                try:
                    self._attempt_catching(operation, errors)
                    if operation._dop_state == PENDING:
                        self._watch(operation, watches)
                        self._attempt_catching(operation, errors)
                finally:
                    NESTING.release(operation._dop_lock)
            else:
                # Inside another operation, with this one's (shared) lock in another thread's hands. Watch first,
                # so that nothing is missed, and try as soon as this thread is out.
                self._watch(operation, watches)
                NESTING.defer(self._try, operation)
            if operation._dop_state == PENDING:
                self._start_timer(operation)
            accepted = True
        finally:
            if not accepted:
                self._end(operation, CANCELLED, False)

    def _attempt_catching(self, operation: DelayedOperation, errors: list[Exception]) -> None:
        try:
            self._attempt(operation)
        except Exception as error:  # noqa: BLE001  for the submitter, who gets it when the operation is safely in
            if errors and errors[0] is not error and error.__context__ is None:
                error.__context__ = errors[0]  # the first try's; one traceback shows both
            errors[:] = [error]

    def _watch(self, operation: DelayedOperation, watches: list[Watch]) -> None:
        if not self._directory.join(operation, watches):
            raise self._refusal(operation)

    def _start_timer(self, operation: DelayedOperation) -> None:
        try:
            task = self._timer.call_later(operation._dop_timeout, self._expire, operation)
        except Exception:
            if self._end(operation, CANCELLED, False):
                raise
            return  # it ended meanwhile: it needs no timer any more
        surplus: Stoppable | None = task
        with self._lock:
            if operation._dop_state == PENDING:
                operation._dop_task = task
                self._delayed += 1
                surplus = None
        if surplus is not None:
            surplus.cancel()

    # -- the tries

    def _try(self, operation: DelayedOperation) -> bool:
        """Try an operation on behalf of a check; True if this completed it. Reports what its code raises."""
        lock = operation._dop_lock
        if not NESTING.enter(lock):
            NESTING.defer(self._try, operation)
            return False
        try:
            try:
                return self._attempt(operation)
            finally:
                NESTING.leave(lock)
        except Exception as error:  # noqa: BLE001  reported
            self._report(error, operation)
        return operation._dop_state == COMPLETED  # then it was on_complete that raised

    def _attempt(self, operation: DelayedOperation) -> bool:
        """Call `try_complete`, with the operation's lock held; True if this completed it."""
        if operation._dop_state != PENDING:
            return False
        if operation._dop_trying:  # a check from inside its own try: the try is repeated, see operation.py
            operation._dop_again = True
            return False
        done = False
        operation._dop_trying = True
        try:
            for _ in range(ROUNDS):
                operation._dop_again = False
                done = operation.try_complete()
                if done or not operation._dop_again or operation._dop_state != PENDING:
                    break
        finally:
            operation._dop_trying = False
        if not done:
            return False
        return operation._dop_state == COMPLETED or (
            operation._dop_state == PENDING and operation.force_complete()
        )

    # -- the ways out

    def _expire(self, operation: DelayedOperation) -> bool:
        """End an operation whose time is over; the timer calls this. True if it did, False if it had ended."""
        lock = operation._dop_lock
        if not NESTING.enter(lock):
            NESTING.defer(self._expire, operation)
            return False
        failures: list[Exception] = []
        try:
            try:
                if not self._end(operation, EXPIRED, False):
                    return False
                try:
                    operation.on_complete()
                except Exception as error:  # noqa: BLE001  reported
                    failures.append(error)
                finally:
                    operation.on_expiration()
            except Exception as error:  # noqa: BLE001  reported
                failures.append(error)
            finally:
                NESTING.leave(lock)
        finally:
            while failures:  # popped, for a frame must not hold the exception that holds the frame
                self._report(failures.pop(0), operation)
        return True

    def _end(self, operation: DelayedOperation, state: int, trying: bool) -> bool:
        """Pass an operation of this purgatory to `state`: off every key, timer stopped. True if this did it.

        Only a pending operation passes; and a cancelled one once more, when its new owner completes it
        (which a try that was under way at the time, `trying`, does not).
        """
        with self._lock:
            earlier = operation._dop_state
            if earlier != PENDING and (earlier != CANCELLED or state != COMPLETED or trying):
                return False
            operation._dop_state = state
            self._directory.leave(operation)
            task = operation._dop_task
            operation._dop_task = None
            if task is not None:
                self._delayed -= 1
            if state == COMPLETED:
                self._completed += 1
            elif state == EXPIRED:
                self._expired += 1
            else:
                self._cancelled += 1
        if task is not None:
            task.cancel()
        return True

    def _report(self, error: Exception, operation: DelayedOperation) -> None:
        with self._lock:
            self._errors += 1
        if self._on_error is not None:
            try:
                self._on_error(error, cast("OperationT", operation))
                return
            except Exception:  # noqa: BLE001  logged
                logger.exception("%r: on_error raised while handling an error of %r", self, operation)
        logger.error("%r: %r raised", self, operation, exc_info=error)

    # -- odds and ends

    def _refusal(self, operation: DelayedOperation) -> PurgatoryClosedError:
        return PurgatoryClosedError(f"{self!r} does not accept {operation!r}")


def _watches(operation: DelayedOperation, keys: Iterable[Hashable]) -> list[Watch]:
    """One watch for every different key. Hashes and compares them, which is user code: no lock is held."""
    if not isinstance(operation, DelayedOperation):
        raise TypeError(f"expected a DelayedOperation, not {operation!r}")
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"keys must be a collection of keys: pass [{keys!r}] for this one")
    watches = [Watch(operation, key, hash(key)) for key in dict.fromkeys(keys)]
    if not watches:
        raise ValueError(f"{operation!r} must wait on at least one key, or nothing could complete it")
    return watches
