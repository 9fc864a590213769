"""Slots for pending tasks, in parallel integer arrays, and circular linked lists of these slots.

A pending task has a *slot*: an index into two arrays (`links`: next, previous and generation; `deadline`) and a list of
`items`. The arrays hold no Python objects, so a million pending tasks are four objects to the garbage collector, not a
million. The scheme is that of a slab allocator (Bonwick, "The Slab Allocator", 1994): freed slots are threaded on a
free list and reused, newest first.

Ground rules
------------
* A slab has one owner, the wheel, and is touched under its owner's lock only. Nothing in here locks.
* A slot is live when its generation is odd. Taking and releasing a slot each add one to its generation, so a
  handle (generation and slot in one integer) goes stale the moment its task ends, however often the slot is
  used again. (A generation has 31 bits: a handle kept through 2**30 reuses of one slot would come alive again.)
* Every slot is always on exactly one circular list, if only on a list of its own. So `unlink` needs no test, and need
  not know the list; a second `unlink` does no harm. A list is identified by its sentinel, a slot without a task
  (`reserve`): an empty list is a sentinel linked to itself.
* A slot's links and its generation lie side by side, three numbers per slot in `links`: with a million tasks pending, a
  slot looked up at random is in no cache, and one cache miss is cheaper than three.
* The arrays grow in place, by an eighth when they are large. The C library moves large blocks by their page tables,
  not byte by byte, so that no single start takes long. `links` and `deadline` are renewed whenever the arrays grow.
* `release` hands the item back and never drops it: dropping the last reference may run a user's `__del__`, which
  must not happen under the owner's lock.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from abeyant.engine.collector import pause_collection, resume_collection

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.engine.memory import GENERATION, NEXT, PREV, STRIDE, fetch_int, fetch_long, ints, longs
else:
    from cython.cimports.abeyant.engine.memory import (
        GENERATION,
        NEXT,
        PREV,
        STRIDE,
        fetch_int,
        fetch_long,
        ints,
        longs,
    )

# A handle is `generation << 32 | slot`; it fits a signed 64-bit integer.
SLOT_MASK = 0xFFFFFFFF
_SLOT_MASK = SLOT_MASK  # a C constant when compiled
_GENERATION_MASK = 0x7FFFFFFF

_FIRST_ROOM = 256
_LARGE = 1 << 16  # slots: up to here the room doubles
_MOST = 1 << 30


def grown(values: array[int], typecode: str, room: int) -> array[int]:
    """Return a copy of `values` with `room` elements; the added elements are zero."""
    grown = array(typecode)
    grown.frombytes(memoryview(values).cast("B"))
    grown.frombytes(bytes((room - len(values)) * grown.itemsize))
    return grown


class Slab:
    """A store of slots with a deadline, an item and two links each.

    All operations are O(1); `take_slot` and `reserve` are O(1) amortised, as the room grows in proportion.
    Memory: 20 bytes a slot and a pointer for the item.
    """

    __slots__ = ("_born", "_deadlines", "_free", "_fresh", "_links", "_room", "deadline", "items", "links")

    def __init__(self, born: int = 0) -> None:
        """Start generations at `born`, which is even. Handles of a slab with lower generations are stale here."""
        self._born = born & _GENERATION_MASK
        self._room = 0
        self._free = -1  # head of the free list, threaded through the links; -1 ends it
        self._fresh = 0  # slots from here on have never been used
        self._links = array("i")
        self._deadlines = array("q")
        self.items: list[object] = []
        self._grow(_FIRST_ROOM)

    # -- slots ---------------------------------------------------------------------------------------------

    def take(self, deadline: int, item: object) -> int:
        """Take a slot as `take_slot` does, and return its handle."""
        return self.handle(self.take_slot(deadline, item))

    def take_slot(self, deadline: int, item: object) -> int:
        """Take a free slot for `deadline` and `item`, and return it: live, and on a list of its own."""
        reused = self._free >= 0
        if not reused and self._fresh == self._room:
            self._grow(self._fresh + 1)
        slot = self._free if reused else self._fresh
        at = STRIDE * slot
        self.deadline[slot] = deadline
        if reused:
            self._free = self.links[at + NEXT]
        else:
            self._fresh = slot + 1
            self.links[at + GENERATION] = self._born
        self.links[at + GENERATION] = (self.links[at + GENERATION] + 1) & _GENERATION_MASK
        self.links[at + NEXT] = slot
        self.links[at + PREV] = slot
        self.items[slot] = item
        return slot

    def release(self, slot: int) -> object:
        """Unlink and free a live slot; return its item, which the slab no longer refers to."""
        self.unlink(slot)
        item = self.items[slot]
        self.items[slot] = None
        at = STRIDE * slot
        self.links[at + GENERATION] = (self.links[at + GENERATION] + 1) & _GENERATION_MASK
        self.links[at + NEXT] = self._free
        self._free = slot
        return item

    def reserve(self, count: int) -> int:
        """Reserve `count` adjacent slots as sentinels, each an empty list; return the first."""
        first = self._fresh
        if first + count > self._room:
            self._grow(first + count)
        self._fresh = first + count
        for slot in range(first, first + count):
            self.links[STRIDE * slot + NEXT] = slot
            self.links[STRIDE * slot + PREV] = slot
            self.deadline[slot] = -1
        return first

    def handle(self, slot: int) -> int:
        """Return the handle of a live slot."""
        generation: int = self.links[STRIDE * slot + GENERATION]
        return (generation << 32) | slot

    def find(self, handle: int) -> int:
        """Return the live slot of `handle`, or -1 when its task has ended (or the handle was never given out)."""
        slot = handle & _SLOT_MASK
        generation = handle >> 32
        if slot < self._fresh and generation & 1 and self.links[STRIDE * slot + GENERATION] == generation:
            return slot
        return -1

    def fetch(self, handle: int) -> None:
        """Prefetch the memory of a handle's slot, to load it while the caller does something else."""
        slot = handle & _SLOT_MASK
        if slot < self._fresh:
            fetch_int(self.links, STRIDE * slot + GENERATION)
            fetch_long(self.deadline, slot)

    def _grow(self, at_least: int) -> None:
        paused = pause_collection()
        try:
            room = max(self._room, _FIRST_ROOM)
            while room < at_least:
                room += room if room < _LARGE else room >> 3
            if room > _MOST:
                raise OverflowError(f"a wheel holds at most {_MOST:,} pending tasks")
            # Each to its own length, in case that an earlier attempt ran out of memory midway.
            self.items.extend([None] * (room - len(self.items)))
            self._links.frombytes(bytes((STRIDE * room - len(self._links)) * self._links.itemsize))
            self._deadlines.frombytes(bytes((room - len(self._deadlines)) * self._deadlines.itemsize))
            self._room = room
        finally:
            self.links = ints(self._links)
            self.deadline = longs(self._deadlines)
            resume_collection(paused)

    # -- circular doubly linked lists ----------------------------------------------------------------------

    def first(self, sentinel: int) -> int:
        """Return the first slot on a sentinel's list, or the sentinel if it is empty. For a slot, return the next."""
        return self.links[STRIDE * sentinel + NEXT]

    def last(self, sentinel: int) -> int:
        """Return the last slot on a sentinel's list, or the sentinel if the list is empty."""
        return self.links[STRIDE * sentinel + PREV]

    def is_empty(self, sentinel: int) -> bool:
        """Return whether nothing but the sentinel is on its list."""
        return self.links[STRIDE * sentinel + NEXT] == sentinel

    def unlink(self, slot: int) -> None:
        """Take `slot` off whatever list it is on and leave it on a list of its own."""
        after = self.links[STRIDE * slot + NEXT]
        before = self.links[STRIDE * slot + PREV]
        self.links[STRIDE * before + NEXT] = after
        self.links[STRIDE * after + PREV] = before
        self.links[STRIDE * slot + NEXT] = slot
        self.links[STRIDE * slot + PREV] = slot

    def push_back(self, sentinel: int, slot: int) -> None:
        """Append `slot`, which must be unlinked, to the sentinel's list."""
        last = self.links[STRIDE * sentinel + PREV]
        self.links[STRIDE * last + NEXT] = slot
        self.links[STRIDE * slot + PREV] = last
        self.links[STRIDE * slot + NEXT] = sentinel
        self.links[STRIDE * sentinel + PREV] = slot

    def push_front(self, sentinel: int, slot: int) -> None:
        """Prepend `slot`, which must be unlinked, to the sentinel's list."""
        self.push_back(self.links[STRIDE * sentinel + NEXT], slot)

    def move_all(self, source: int, target: int) -> None:
        """Move all slots, in order, from the list of the sentinel `source` to the empty list of `target`. O(1)."""
        first = self.links[STRIDE * source + NEXT]
        if first == source:
            return
        last = self.links[STRIDE * source + PREV]
        self.links[STRIDE * target + NEXT] = first
        self.links[STRIDE * first + PREV] = target
        self.links[STRIDE * target + PREV] = last
        self.links[STRIDE * last + NEXT] = target
        self.links[STRIDE * source + NEXT] = source
        self.links[STRIDE * source + PREV] = source

    # -- introspection -------------------------------------------------------------------------------------

    def members(self, sentinel: int) -> list[int]:
        """Return the slots on the sentinel's list, first to last. O(slots on the list)."""
        slots = []
        slot = self.first(sentinel)
        while slot != sentinel:
            slots.append(slot)
            slot = self.first(slot)
        return slots

    def live_slots(self) -> list[int]:
        """Return every slot that carries a task, by slot number. O(slots ever used)."""
        return [slot for slot in range(self._fresh) if self._is_live(slot)]

    def _is_live(self, slot: int) -> bool:
        return self.links[STRIDE * slot + GENERATION] & 1 == 1

    def _check(self) -> None:
        """Assert what must hold between any two calls. O(slots ever used); for tests."""
        assert len(self.items) == len(self._deadlines) == self._room
        assert len(self._links) == STRIDE * self._room
        free = set()
        slot = self._free
        while slot >= 0:
            assert slot not in free, f"slot {slot} is on the free list twice"
            assert not self._is_live(slot), f"slot {slot} is live and on the free list"
            free.add(slot)
            slot = self.first(slot)
        for slot in range(self._fresh):
            if slot in free:
                assert self.items[slot] is None, f"free slot {slot} still holds {self.items[slot]!r}"
                continue
            assert self.last(self.first(slot)) == slot, f"slot {slot} is not its successor's predecessor"
            assert self.first(self.last(slot)) == slot, f"slot {slot} is not its predecessor's successor"
            if not self._is_live(slot):
                assert self.items[slot] is None, f"sentinel {slot} holds an item"
