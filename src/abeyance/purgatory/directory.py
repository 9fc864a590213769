"""From a key to its watch list, without ever running a key's `__hash__` or `__eq__` under the lock.

A dict from keys to lists would call both while the purgatory's lock is held, and they are the user's code: slow,
raising, calling back (law P5). So the table goes by the hash, an int taken before the lock, to a chain of
lists whose keys have that hash. Nearly always the chain is one long. To find a key's list: read the chain's next
list under the lock, compare its key with no lock held, and once more under the lock see whether what was found
still stands. Taking a watch out needs neither hash nor comparison, so an operation can always leave.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Final

from abeyance.purgatory.lists_lock import ListsLock
from abeyance.purgatory.outcome import PENDING
from abeyance.purgatory.watch import Watch
from abeyance.purgatory.watchers import Watchers

if TYPE_CHECKING:
    from abeyance.purgatory.operation import DelayedOperation

BATCH: Final = 64
"""Watches that are read or written in one holding of the lock, so that long lists do not hold anybody up."""


class Directory:
    """The watch lists of a purgatory by key, and their counts. All of it is guarded by the purgatory's lock."""

    __slots__ = ("_chains", "_lock", "closed", "keys", "watches")

    def __init__(self, lock: ListsLock) -> None:
        self._lock = lock
        self._chains: dict[int, Watchers] = {}
        self.closed = False  # nobody joins any more
        self.keys = 0
        self.watches = 0

    # -- with the lock free: these compare keys

    def find(self, key: Hashable, hashed: int) -> Watchers | None:
        """The list of `key`, if anybody waits on it. O(1)."""
        with self._lock:
            head = self._chains.get(hashed)
        return self._match(key, head)

    def join(self, operation: DelayedOperation, watches: list[Watch]) -> bool:
        """Put an operation on the lists of its keys, unless it has ended. False when closed. O(its keys).

        A key's comparison may raise; the operation is then on some of its lists, and the caller lets it leave.
        """
        for start in range(0, len(watches), BATCH):
            batch = watches[start : start + BATCH]
            while batch:
                with self._lock:
                    heads = [self._chains.get(watch.hashed) for watch in batch]
                lists = [self._match(watch.key, head) for watch, head in zip(batch, heads, strict=True)]
                again: list[Watch] = []
                with self._lock:
                    if self.closed:
                        return False
                    if operation._dop_state != PENDING:
                        return True
                    for watch, found, head in zip(batch, lists, heads, strict=True):
                        if self._attach(watch, found, head):
                            watch.also = operation._dop_watches
                            operation._dop_watches = watch
                        else:
                            again.append(watch)
                batch = again  # the lists of these came or went meanwhile
        return True

    def _match(self, key: Hashable, watchers: Watchers | None) -> Watchers | None:
        """The list of `key` in the chain that begins here."""
        while watchers is not None and not (watchers.key is key or watchers.key == key):
            with self._lock:
                watchers = watchers.sibling
        return watchers

    # -- with the lock held: these run nobody's code

    def leave(self, operation: DelayedOperation) -> None:
        """Take an operation off all of its lists. O(its keys)."""
        watch = operation._dop_watches
        operation._dop_watches = None
        while watch is not None:
            watchers = watch.watchers
            if watchers is not None:
                watchers.remove(watch)
                self.watches -= 1
                if watchers.size == 0:
                    self._retire(watchers)
            watch = watch.also

    def operations(self) -> list[DelayedOperation]:
        """Every operation on a list, once. O(watches)."""
        found: list[DelayedOperation] = []
        for watchers in self:
            watch = watchers.first
            while watch is not None:
                if watch.operation._dop_watches is watch:  # of its watches, one comes first
                    found.append(watch.operation)
                watch = watch.next
        return found

    def __iter__(self) -> Iterator[Watchers]:
        """Every list, in no order that means anything."""
        for head in self._chains.values():
            watchers: Watchers | None = head
            while watchers is not None:
                yield watchers
                watchers = watchers.sibling

    def _attach(self, watch: Watch, found: Watchers | None, head: Watchers | None) -> bool:
        """Let a watch join `found`, or a new list where none was found in the chain that began with `head`. O(1).

        False where the lists changed since they were read: look again. A new list always becomes its chain's head,
        so a key that was not there is still not there as long as the head is the same.
        """
        if found is None:
            if self._chains.get(watch.hashed) is not head:
                return False
            found = Watchers(watch.key, watch.hashed)
            found.sibling = head
            self._chains[watch.hashed] = found
            self.keys += 1
        elif found.retired:
            return False
        found.append(watch)
        self.watches += 1
        return True

    def _retire(self, watchers: Watchers) -> None:
        """Take an empty list out of the table. O(keys with its hash)."""
        watchers.retired = True
        self.keys -= 1
        behind = watchers.sibling
        before = self._chains[watchers.hashed]
        if before is watchers:
            if behind is None:
                del self._chains[watchers.hashed]
            else:
                self._chains[watchers.hashed] = behind
            return
        while before.sibling is not None and before.sibling is not watchers:
            before = before.sibling
        before.sibling = behind
