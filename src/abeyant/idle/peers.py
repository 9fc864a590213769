"""The watched peers: each is a slot of a timing wheel, found through a hash table.

Pure data: nothing in here runs `on_idle` or calls a timer. The table chains the wheel's own slots (`_chain`, `_hash`),
and its keys are the wheel's items. The garbage collector sees a dozen objects, however many peers are watched.

The ground rules are those of detector.py. Call every method but `lock` with the lock held.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.slab import grown
from abeyant.engine.wheel import TimingWheel
from abeyant.mutex import LOCKED, mutex

_LOCKED = LOCKED
_SLOT_MASK = 0xFFFFFFFF
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: Fibonacci hashing (Knuth, volume 3, 6.4)
_WORD = 0xFFFFFFFFFFFFFFFF
_FIRST_BITS = 6


class Peers:
    """The peers of one detector, each with its deadline."""

    __slots__ = ("_bits", "_chain", "_first", "_hash", "_lock", "closed", "wheel")

    def __init__(self, wheel: TimingWheel) -> None:
        self.wheel = wheel
        self.closed = False  # True: `find` finds no peer
        self._lock = mutex("an IdleDetector")
        # By slot of the wheel: the hash of its peer, and the next slot of its chain; -1 ends one.
        self._hash = array("q", bytes(8 * 256))
        self._chain = array("i", bytes(4 * 256))
        self._bits = _FIRST_BITS
        self._first = array("i", [-1]) * (1 << _FIRST_BITS)  # the first slot of each chain

    def lock(self) -> None:
        """Acquire the lock; do nothing where the interpreter's global lock is enough."""
        if _LOCKED:
            self._lock.acquire()

    def unlock(self) -> None:
        """Release the lock."""
        if _LOCKED:
            self._lock.release()

    def find(self, peer: Hashable, hashed: int) -> int:
        """Return the slot of a peer, or -1, valid on return. The lock is released while peers are compared."""
        slab = self.wheel._slab
        while True:
            started = self.wheel._started
            slot = self._first[self._bucket(hashed)]
            while slot >= 0:
                if self._hash[slot] == hashed:
                    other = slab.items[slot]
                    if other is peer:
                        return slot
                    handle = slab.handle(slot)
                    self.unlock()
                    try:
                        same = bool(other == peer)
                    finally:
                        other = None  # maybe the last reference
                        self.lock()
                    if slab.find(handle) < 0 or self.closed:
                        break  # the peer was removed meanwhile: look again
                    if same:
                        return slot
                slot = self._chain[slot]
            else:
                if self.wheel._started == started:  # else it may have been added meanwhile
                    return -1

    def add(self, peer: Hashable, hashed: int, deadline: int) -> None:
        """Watch a peer that is not watched yet. O(1), amortised."""
        if len(self.wheel) >> self._bits:
            self._widen()
        handle = self.wheel._add(deadline, peer)
        slot = handle & _SLOT_MASK
        if slot >= len(self._hash):
            try:
                self._grow()
            except BaseException:
                self.wheel._remove(handle)
                raise
        bucket = self._bucket(hashed)
        self._hash[slot] = hashed
        self._chain[slot] = self._first[bucket]
        self._first[bucket] = slot

    def refresh(self, slot: int, deadline: int) -> None:
        """Give a peer a later deadline. Ignore an earlier one, of a thread that read the clock before another. O(1)."""
        filed: int = self.wheel._slab.deadline[slot]
        if deadline > (filed - 1) * self.wheel._tick:
            self.wheel._refresh(self.wheel._slab.handle(slot), deadline)

    def remove(self, slot: int) -> Any:
        """Stop watching a peer; return it, for the caller to drop with the lock free. O(slots in its chain)."""
        self._unchain(slot)
        return self.wheel._remove(self.wheel._slab.handle(slot))

    def next_idle(self, now: int) -> int:
        """Return the slot of the next peer whose time-out has passed, or -1."""
        if self.closed or self.wheel._settle(self.wheel._to_clock(now), 1024) <= 0:
            return -1
        return self.wheel._next_due()

    def take(self, slot: int) -> Any:
        """Stop watching a peer whose time-out has passed; return the peer."""
        self._unchain(slot)
        return self.wheel._hand_out(slot)

    def close(self) -> list[tuple[int, Any]]:
        """Stop watching all peers; return (deadline, peer) for each, by deadline. O(n log n)."""
        self.closed = True
        for bucket in range(1 << self._bits):  # from here on `find` finds no peer, while `drain` allocates
            self._first[bucket] = -1
        return self.wheel.drain()

    def _bucket(self, hashed: int) -> int:
        return ((hashed * _GOLDEN) & _WORD) >> (64 - self._bits)

    def _unchain(self, slot: int) -> None:
        """Take a slot out of its chain. O(slots in the chain)."""
        bucket = self._bucket(self._hash[slot])
        before = self._first[bucket]
        if before == slot:
            self._first[bucket] = self._chain[slot]
            return
        while self._chain[before] != slot:
            before = self._chain[before]
        self._chain[before] = self._chain[slot]

    def _grow(self) -> None:
        """Grow the table to the wheel's number of slots."""
        paused = pause_collection()
        try:
            room = self.wheel._slab._room
            hashes, chains = grown(self._hash, "q", room), grown(self._chain, "i", room)
            self._hash = hashes
            self._chain = chains
        finally:
            resume_collection(paused)

    def _widen(self) -> None:
        """Double the number of chains. O(peers)."""
        paused = pause_collection()
        try:
            table = array("i", [-1]) * (2 << self._bits)
            slots = self.wheel._slab.live_slots()
            self._first = table
            self._bits += 1
            for slot in slots:
                bucket = self._bucket(self._hash[slot])
                self._chain[slot] = self._first[bucket]
                self._first[bucket] = slot
        finally:
            resume_collection(paused)

    def check(self) -> None:
        """Assert what must hold between two calls. O(peers + chains); for tests."""
        self.wheel._check()
        slab = self.wheel._slab
        met = set()
        for bucket in range(1 << self._bits):
            slot = self._first[bucket]
            while slot >= 0:
                assert slot not in met, f"slot {slot} is in a chain twice"
                assert self._bucket(self._hash[slot]) == bucket, f"slot {slot} is in the wrong chain"
                assert self._hash[slot] == hash(slab.items[slot]), f"slot {slot} has another's hash"
                met.add(slot)
                slot = self._chain[slot]
        assert met == set(slab.live_slots()), "every peer is found, and nobody else"
