"""The watch lists of a purgatory, by key. Pure data; nothing in here runs an operation's code.

The idea
--------
A *watch* is one operation waiting on one key. It has a *slot*, an index into parallel integer arrays, like a
pending task in engine/slab.py, and for the same reason: the garbage collector sees a dozen objects, however many
operations wait. A key's list is circular, through `_next` and `_previous`, from a *sentinel* slot that carries the
key. The watches of one operation are chained through `_also`, so that the operation can leave all of its lists in
O(its keys), wherever it stands in them (law P4), without hashing or comparing keys.

A hash table, with chains through `_also` too, has the sentinel of each key. The sentinel exists from the key's first
watch to its last: no key stays behind when its operations are gone.

Ground rules
------------
* `lock` guards all arrays, and the operations' state too: it is lock 2 of operation.py. Each group of methods says
  whether they are called with the lock held.
* Keys' `__hash__` and `__eq__` are the user's code: slow, raising, calling back. They run with the lock free (law
  P5): the hash is computed before; to compare, `_find` releases the lock, and starts again if the lists that it had
  read have changed meanwhile. A slot gets a new `_number` whenever it is taken, which shows such a change.
* The last reference to a key or an operation is not dropped under the lock, as this may run a `__del__`. Methods
  that may hold the last reference return it.

It is one file on purpose: lists, table and slots are the same arrays, and a seventh of the lines is `check`.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.slab import grown
from abeyant.mutex import LOCKED, mutex
from abeyant.purgatory.errors import PurgatoryError
from abeyant.purgatory.operation import PENDING, DelayedOperation

_PENDING = PENDING  # C constants when compiled
_LOCKED = LOCKED
_SCATTER = 0x61C88647  # 2**32 less the golden ratio's part of it (Knuth's multiplicative hashing); odd
_LOW = 0xFFFFFFFF

_FIRST_ROOM = 256
_FIRST_BITS = 6


class Directory:
    """The watch lists of one purgatory, and their counts."""

    __slots__ = (
        "_also", "_bits", "_free", "_fresh", "_hash", "_issued", "_list", "_lock", "_next", "_number", "_objects",
        "_previous", "_room", "_table", "closed", "keys", "watches",
    )  # fmt: skip

    def __init__(self) -> None:
        self.closed = False  # True: `join` refuses all operations
        self.keys = 0
        self.watches = 0
        self._lock = mutex("the purgatory", PurgatoryError)
        # A slot is a sentinel, a watch on a list, a watch on none (not yet, or its key was given twice), or free.
        self._next = array("i", bytes(4 * _FIRST_ROOM))  # in the key's list; of a free slot: the next free one
        self._previous = array("i", bytes(4 * _FIRST_ROOM))
        self._also = array("i", bytes(4 * _FIRST_ROOM))  # the next watch of the operation, list of the chain
        self._list = array("i", bytes(4 * _FIRST_ROOM))  # of a watch on a list: the list's sentinel; else -1
        self._hash = array("q", bytes(8 * _FIRST_ROOM))  # of the key
        self._number = array("q", bytes(8 * _FIRST_ROOM))  # in order of arrival; -1 for a free slot
        self._objects: list[Any] = [None] * _FIRST_ROOM  # a sentinel's key, the operation of a watch on a list
        self._free = -1  # the first free slot among those used before
        self._fresh = 0  # the first that never was
        self._room = _FIRST_ROOM
        self._bits = _FIRST_BITS
        self._table = array("i", [-1]) * (1 << _FIRST_BITS)
        self._issued = 0  # the next number

    def lock(self) -> None:
        """Acquire lock 2; do nothing where the interpreter's global lock is enough."""
        if _LOCKED:
            self._lock.acquire()

    def unlock(self) -> None:
        """Release lock 2."""
        if _LOCKED:
            self._lock.release()

    def close(self) -> None:
        """Make every further `join` return False. Call it with the lock held."""
        self.closed = True

    # -- with the lock free: these hash or compare keys

    def prepare(self, keys: tuple[Hashable, ...]) -> int:
        """Create a chain of watches for `keys`, on no list yet; return the first. Raises if a key has no hash."""
        first = last = -1
        try:
            for key in keys:
                hashed = hash(key)
                self.lock()
                try:
                    slot = self._take(hashed)
                    if last < 0:
                        first = slot
                    else:
                        self._also[last] = slot
                    last = slot
                finally:
                    self.unlock()
        except BaseException:
            self.lock()
            try:
                self.discard(first)
            finally:
                self.unlock()
            raise
        return first

    def join(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> bool:
        """Put an operation's watches on the lists of `keys`, unless it has ended. Return False if closed. O(its keys).

        A key's comparison may raise; the operation is then on some of its lists, and the caller has to call `leave`.
        """
        self.lock()
        try:
            began = self._issued
            position = 0
            watch = operation._dop_watches
            while True:
                if self.closed:
                    return False
                if operation._dop_state != _PENDING or watch < 0:
                    return True
                sentinel = self._find(keys[position], self._hash[watch])
                # `_find` may have released the lock: has the operation ended, or has the purgatory been closed?
                if operation._dop_state == _PENDING and not self.closed:
                    if sentinel < 0:
                        sentinel = self._open(keys[position], self._hash[watch])
                        self._append(sentinel, watch, operation)
                    elif not self._is_on(sentinel, operation, began):
                        self._append(sentinel, watch, operation)
                    watch = self._also[watch]
                    position += 1
        finally:
            self.unlock()

    def on(self, key: Hashable) -> Any:
        """Return the operations on a key's list: None, a single operation, or a list in order of arrival."""
        hashed = hash(key)
        several: list[DelayedOperation] | None = None
        while True:
            self.lock()
            try:
                sentinel = self._find(key, hashed)
                if sentinel < 0:
                    return None
                watch = self._next[sentinel]
                if watch == self._previous[sentinel]:
                    return self._objects[watch]
                if several is not None:
                    while watch != sentinel:
                        several.append(self._objects[watch])
                        watch = self._next[watch]
                    return several
            finally:
                self.unlock()
            several = []  # made with the lock free

    # -- with the lock held: these run no user code

    def discard(self, first: int) -> None:
        """Free a chain of watches that are on no list."""
        while first >= 0:
            after = self._also[first]
            self._release(first)
            first = after

    def leave(self, operation: DelayedOperation, spent: list[Any] | None) -> Any:
        """Take an operation off all of its lists. O(its keys).

        Return a key that now has no watches, or None, for the caller to drop with the lock free. If `spent` is a list,
        append all such keys to it.
        """
        watch = operation._dop_watches
        operation._dop_watches = -1
        key = None
        while watch >= 0:
            after = self._also[watch]
            sentinel = self._list[watch]
            if sentinel >= 0:
                self._next[self._previous[watch]] = self._next[watch]
                self._previous[self._next[watch]] = self._previous[watch]
                self._objects[watch] = None
                self.watches -= 1
                if self._next[sentinel] == sentinel:
                    key = self._retire(sentinel)
                    if spent is not None:
                        spent.append(key)
            self._release(watch)
            watch = after
        return key

    # -- lists by key

    def _find(self, key: Hashable, hashed: int) -> int:
        """Return the sentinel of a key's list, or -1. The lock is held, but released to compare keys.

        The result is true on return, whatever happened while keys were compared.
        """
        while True:
            bucket = self._bucket(hashed)
            head = self._table[bucket]
            if head < 0:
                return -1
            first = self._number[head]
            bits = self._bits
            sentinel = head
            while sentinel >= 0:
                if self._hash[sentinel] == hashed:
                    other = self._objects[sentinel]
                    if other is key:
                        return sentinel
                    number = self._number[sentinel]
                    self.unlock()
                    try:
                        same = bool(other == key)
                    finally:
                        other = None  # maybe the last reference
                        self.lock()
                    if self._number[sentinel] != number:
                        break  # the list was removed meanwhile: look again
                    if same:
                        return sentinel
                sentinel = self._also[sentinel]
            else:
                # A new list always becomes its chain's head, so a key that was not there is still not there
                # as long as the head is the same.
                if self._bits == bits and self._table[bucket] == head and self._number[head] == first:
                    return -1

    def _bucket(self, hashed: int) -> int:
        return (((hashed ^ (hashed >> 32)) & _LOW) * _SCATTER & _LOW) >> (32 - self._bits)

    def _open(self, key: Hashable, hashed: int) -> int:
        """Create an empty list for a key that has none; return its sentinel. O(1), amortised."""
        if self.keys >> self._bits:
            self._widen()
        sentinel = self._take(hashed)
        bucket = self._bucket(hashed)
        self._also[sentinel] = self._table[bucket]
        self._table[bucket] = sentinel
        self._next[sentinel] = sentinel
        self._previous[sentinel] = sentinel
        self._objects[sentinel] = key
        self.keys += 1
        return sentinel

    def _retire(self, sentinel: int) -> Any:
        """Take an empty list out of the table; return its key. O(keys in its chain)."""
        bucket = self._bucket(self._hash[sentinel])
        before = self._table[bucket]
        if before == sentinel:
            self._table[bucket] = self._also[sentinel]
        else:
            while self._also[before] != sentinel:
                before = self._also[before]
            self._also[before] = self._also[sentinel]
        self.keys -= 1
        key = self._objects[sentinel]
        self._objects[sentinel] = None
        self._release(sentinel)
        return key

    def _append(self, sentinel: int, watch: int, operation: DelayedOperation) -> None:
        """Append a watch to a list. O(1)."""
        last = self._previous[sentinel]
        self._next[last] = watch
        self._previous[watch] = last
        self._next[watch] = sentinel
        self._previous[sentinel] = watch
        self._list[watch] = sentinel
        self._objects[watch] = operation
        self._number[watch] = self._issued
        self._issued += 1
        self.watches += 1

    def _is_on(self, sentinel: int, operation: DelayedOperation, began: int) -> bool:
        """Return whether an operation is on a list already, because it was given one key twice.

        `began` is the number at which it began to join. O(watches added to the list since then), usually none.
        """
        watch = self._previous[sentinel]
        while watch != sentinel and self._number[watch] >= began:
            if self._objects[watch] is operation:
                return True
            watch = self._previous[watch]
        return False

    # -- slots

    def _take(self, hashed: int) -> int:
        """Take a free slot and return it: on no list, and alone in its chain."""
        slot = self._free
        if slot >= 0:
            self._free = self._next[slot]
        else:
            if self._fresh == self._room:
                self._grow()
            slot = self._fresh
            self._fresh += 1
        self._hash[slot] = hashed
        self._list[slot] = -1
        self._also[slot] = -1
        self._number[slot] = self._issued
        self._issued += 1
        return slot

    def _release(self, slot: int) -> None:
        """Free a slot, which has to refer to no object any more."""
        self._number[slot] = -1
        self._next[slot] = self._free
        self._free = slot

    def _grow(self) -> None:
        """Make room for twice as many slots."""
        room = self._room * 2
        if room > 1 << 30:
            raise OverflowError(f"a purgatory holds at most {1 << 30:,} watches and keys")
        paused = pause_collection()
        try:
            self._objects.extend([None] * self._room)
            self._next = grown(self._next, "i", room)
            self._previous = grown(self._previous, "i", room)
            self._also = grown(self._also, "i", room)
            self._list = grown(self._list, "i", room)
            self._hash = grown(self._hash, "q", room)
            self._number = grown(self._number, "q", room)
            self._room = room
        finally:
            resume_collection(paused)

    def _widen(self) -> None:
        """Double the number of chains. O(keys)."""
        paused = pause_collection()
        try:
            sentinels = self._sentinels()
            self._table = array("i", [-1]) * (2 << self._bits)
            self._bits += 1
            for sentinel in sentinels:
                bucket = self._bucket(self._hash[sentinel])
                self._also[sentinel] = self._table[bucket]
                self._table[bucket] = sentinel
        finally:
            resume_collection(paused)

    # -- introspection: the lock is held

    def _sentinels(self) -> list[int]:
        """Return every list's sentinel, in no particular order. O(keys + chains)."""
        found = []
        for bucket in range(1 << self._bits):
            sentinel = self._table[bucket]
            while sentinel >= 0:
                found.append(sentinel)
                sentinel = self._also[sentinel]
        return found

    def operations(self) -> list[DelayedOperation]:
        """Return every operation on a list, once. O(watches)."""
        paused = pause_collection()
        try:
            found = []
            for sentinel in self._sentinels():
                watch = self._next[sentinel]
                while watch != sentinel:
                    member = self._objects[watch]
                    if member._dop_watches == watch:  # of its watches, one comes first
                        found.append(member)
                    watch = self._next[watch]
            return found
        finally:
            resume_collection(paused)

    def everyone(self) -> list[DelayedOperation]:
        """Return every operation that is on a list, maybe more than once, whatever state the lists are in. O(slots)."""
        return [found for found in self._objects if isinstance(found, DelayedOperation)]

    def check(self) -> None:
        """Raise AssertionError with the invariant that does not hold, if any. O(slots)."""
        assert self.keys <= 1 << self._bits, "too few chains for the keys"
        free = set()
        slot = self._free
        while slot >= 0:
            assert slot not in free, f"slot {slot} is free twice"
            assert self._number[slot] == -1, f"slot {slot} is free, and has a number"
            assert self._objects[slot] is None, f"slot {slot} is free, and holds {self._objects[slot]!r}"
            free.add(slot)
            slot = self._next[slot]
        sentinels = self._sentinels()
        met = set()  # the watches that were met in lists
        operations = {}
        for sentinel in sentinels:
            where = f"key {self._objects[sentinel]!r}"
            assert sentinel not in free, f"{where}: its slot is free"
            assert self._next[sentinel] != sentinel, f"{where}: an empty list is still in the table"
            before = sentinel
            watch = self._next[sentinel]
            while watch != sentinel:
                operation = self._objects[watch]
                assert watch not in met, f"{where}: its list does not come back to it"
                assert watch not in free, f"{where}: the slot of a watch is free"
                assert self._list[watch] == sentinel, f"{where}: a watch that does not know its list"
                assert self._previous[watch] == before, f"{where}: a broken back link"
                assert self._hash[watch] == self._hash[sentinel], f"{where}: a watch of another key"
                assert before == sentinel or self._number[before] < self._number[watch], f"{where}: not in order"
                assert self._number[watch] < self._issued, f"{where}: a number that was never issued"
                assert operation._dop_state == _PENDING, f"{where}: {operation!r} has ended"
                operations[id(operation)] = operation
                met.add(watch)
                before = watch
                watch = self._next[watch]
            assert self._previous[sentinel] == before, f"{where}: the last watch is not the last"
        assert len(sentinels) == self.keys, f"{len(sentinels)} keys, but {self.keys} were counted"
        assert len(met) == self.watches, f"{len(met)} watches, but {self.watches} were counted"
        for operation in operations.values():
            lists = set()
            watch = operation._dop_watches
            while watch >= 0:
                if self._list[watch] >= 0:
                    assert watch in met, f"{operation!r} has a watch that is in no list"
                    assert self._list[watch] not in lists, f"{operation!r} is watched twice on a key"
                    lists.add(self._list[watch])
                    met.discard(watch)
                watch = self._also[watch]
        assert not met, f"{len(met)} watches are in lists that their operations do not know of"
