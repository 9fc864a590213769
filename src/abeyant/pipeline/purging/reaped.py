# cython: nonecheck=True
"""Base of Kafka's old and present purgatory: watch lists, a timer, and a reaper.

Both purgatories take the same operations as abeyant's purgatory (`abeyant.DelayedOperation`), so that comparisons
differ only in the purgatory. An operation that has ended stays on the watch lists of its other keys until a check or a
purge removes it (`_purge_lists`). In abeyant's purgatory it leaves all lists at once (P4).

A thread (the lab's reaper.py) or a virtual clock calls `turn`. `_lock` guards lists, timer and counts. Compiled, the
global interpreter lock takes its place, as in abeyant's purgatory, because no Python code runs in between. An exception
of an operation's code propagates to the caller, as in Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from abeyant.mutex import LOCKED
from abeyant.purgatory.nesting import defer, enter, enter_at_any_depth, leave
from abeyant.purgatory.operation import COMPLETED, EXPIRED, HAD_HOME, PENDING, DelayedOperation, Home

PURGE_INTERVAL = 1_000  # Kafka's default: `producer.purgatory.purge.interval.requests` and its like

_PENDING = PENDING  # C constants when compiled
_COMPLETED = COMPLETED
_EXPIRED = EXPIRED
_LOCKED = LOCKED
_FOREVER = (1 << 63) - 1


class Reaped(Home):
    """Base class of purgatories that keep ended operations on their watch lists until a purge."""

    __slots__ = (
        "_clock", "_completed", "_expired", "_interval", "_lists", "_lock", "_purges", "_sleeps_until",
        "_visited", "_wake", "_watched",
    )  # fmt: skip

    def __init__(self, clock: Callable[[], int], purge_interval: int = PURGE_INTERVAL) -> None:
        """Take a `clock` in nanoseconds, and the number of ended operations that may stay on lists before a purge."""
        self._clock = clock
        self._interval = purge_interval
        self._lists: dict[Hashable, list[DelayedOperation]] = {}
        self._lock = threading.RLock()
        self._watched = 0
        self._completed = 0
        self._expired = 0
        self._purges = 0
        self._visited = 0
        self._sleeps_until = 0  # ns: when the reaper wakes without a call of `wake`
        self._wake: Callable[[], object] | None = None

    # -- for users of the purgatory

    def try_complete_else_watch(self, operation: Any, keys: Iterable[Hashable]) -> bool:
        """Try to complete `operation`; else watch it on `keys`, try again, start its timer. Return if it completed."""
        wanted: DelayedOperation = operation
        if wanted._dop_adopt(self, -1, False) == HAD_HOME:
            raise ValueError(f"{operation!r} was submitted before: make a new operation")
        if not enter_at_any_depth(wanted):
            raise RuntimeError(f"{operation!r}: its lock is held by another thread")
        try:
            if wanted.try_complete():
                return True
            for key in keys:
                self._watch(key, wanted)
            self._joined()
            if wanted._dop_state == _PENDING and wanted.try_complete():
                return True
        finally:
            leave(wanted)
        self._start(wanted, self._clock() + int(wanted._dop_timeout * 1e9))
        return wanted._dop_state == _COMPLETED

    def check_and_complete(self, key: Hashable) -> int:
        """Try every operation on `key`'s list; return how many completed. O(entries, of ended operations, too)."""
        found = self._lists.get(key)
        if found is None:
            return 0
        completed = 0
        for operation in list(found):
            if operation._dop_state == _PENDING and self._try(operation):
                completed += 1
        self._sweep(key)
        return completed

    @property
    def watched(self) -> int:
        """Return the number of entries on the watch lists, including entries of ended operations."""
        return self._watched

    @property
    def delayed(self) -> int:
        """Return the number of operations in the timer, including ended operations that are still in it."""
        return self._timer_size()

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return the numbers of completed and expired operations, of purges, and of entries that purges visited."""
        return self._completed, self._expired, self._purges, self._visited

    # -- for the reaper

    def next_expiration(self) -> int | None:
        """Return the time at which the timer next has work, in nanoseconds; None if it has none."""
        raise NotImplementedError

    def turn(self, now: int) -> int:
        """Expire due operations, and purge if needed; return how many expired."""
        raise NotImplementedError

    def sleeping(self, until: int, wake: Callable[[], object] | None) -> None:
        """Record until when the reaper sleeps (nanoseconds); an earlier deadline calls `wake`."""
        self._wake = wake
        self._sleeps_until = until

    # -- where the designs differ

    def _joined(self) -> None:
        """Record that an operation was put on its keys' watch lists."""

    def _start(self, operation: DelayedOperation, deadline: int) -> None:
        """Add an operation to the timer unless it has ended."""
        raise NotImplementedError

    def _timer_size(self) -> int:
        """Return the number of operations in the timer."""
        raise NotImplementedError

    def _ended(self, operation: DelayedOperation) -> None:
        """Record that an operation has ended. The caller holds the lock."""

    # -- shared

    def _enter(self) -> None:
        if _LOCKED:
            self._lock.acquire()

    def _leave(self) -> None:
        if _LOCKED:
            self._lock.release()

    def _watch(self, key: Hashable, operation: DelayedOperation) -> None:
        self._enter()
        try:
            if operation._dop_state == _PENDING:
                watchers = self._lists.get(key)
                if watchers is None:
                    self._lists[key] = [operation]
                else:
                    watchers.append(operation)
                self._watched += 1
        finally:
            self._leave()

    def _try(self, operation: DelayedOperation) -> bool:
        if not enter(operation):
            defer(self._try, operation)
            return False
        try:
            return operation._dop_state == _PENDING and bool(operation.try_complete())
        finally:
            leave(operation)

    def _sweep(self, key: Hashable) -> None:
        """Remove ended operations from a key's watch list, and remove the list if it is then empty."""
        gone: list[Any] = []  # their destructors run outside the lock
        self._enter()
        try:
            watchers = self._lists.get(key)
            if watchers is None:
                return
            kept = 0
            for position in range(len(watchers)):
                operation = watchers[position]
                if operation._dop_state == _PENDING:
                    watchers[kept] = operation
                    kept += 1
                else:
                    gone.append(operation)
            self._watched -= len(watchers) - kept
            if kept:
                del watchers[kept:]
            else:
                del self._lists[key]
        finally:
            self._leave()

    def _purge_lists(self) -> None:
        """Remove ended operations from all watch lists. O(entries of the lists)."""
        self._purges += 1
        self._visited += self._watched
        for key in list(self._lists):
            self._sweep(key)

    def _expire(self, operation: DelayedOperation) -> bool:
        if not enter_at_any_depth(operation):
            defer(self._expire, operation)
            return False
        try:
            if not self._end(operation, _EXPIRED, False):
                return False
            operation.on_complete()
            operation.on_expiration()
            return True
        finally:
            leave(operation)

    def _end(self, operation: DelayedOperation, state: int, trying: bool) -> bool:
        """Move a pending operation to `state`. Return True to exactly one caller, the one that moved it (P1)."""
        self._enter()
        try:
            if operation._dop_state != _PENDING:
                return False
            operation._dop_state = state
            if state == _COMPLETED:
                self._completed += 1
            else:
                self._expired += 1
            self._ended(operation)
            return True
        finally:
            self._leave()

    def _report(self, error: Exception, operation: DelayedOperation) -> None:
        raise error

    def _started(self, deadline: int) -> None:
        """Wake the reaper if it would sleep past a deadline that was just added."""
        if deadline < self._sleeps_until and self._wake is not None:
            self._wake()
