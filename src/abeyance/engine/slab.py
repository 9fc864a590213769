"""Slots for pending tasks, in parallel integer arrays, and circular lists threaded through them.

A pending task is a *slot*: an index into four arrays (links both ways, deadline, generation) and a list of
items. The arrays hold no Python object, so a million pending tasks are five objects to the garbage collector
and not a million. The scheme is that of a slab allocator (Bonwick, "The Slab Allocator", 1994): freed slots are
threaded on a free list and reused, newest first.

Ground rules
------------
* A slab has one owner, the wheel, and is touched under its owner's lock only. Nothing in here locks.
* A slot is live when its generation is odd. Taking and releasing a slot each add one to its generation, so a
  handle (generation and slot in one integer) goes stale the moment its task ends, however often the slot is
  used again. (A generation has 31 bits: a handle kept through 2**30 reuses of one slot would come alive again.)
* Every slot is always on exactly one circular list, if only on its own. So `unlink` needs no question asked
  and no list named, and a second `unlink` harms nothing. A list is known by its sentinel, a slot that carries
  no task (`reserve`): an empty list is a sentinel linked to itself.
* `take` hands the item back and never drops it: dropping the last reference may run a user's `__del__`, which
  must not happen under the owner's lock.
"""

from __future__ import annotations

import gc
from array import array

# A handle is `generation << 32 | slot`; it fits a signed 64-bit integer.
_SLOT_MASK = 0xFFFFFFFF
_GENERATION_MASK = 0x7FFFFFFF

_FIRST_ROOM = 256


def pause_collection() -> bool:
    """Keep the garbage collector from starting; return what `resume_collection` is to be given.

    For the few places that allocate: a collection may run a `__del__` that uses this very wheel, half changed.
    """
    collecting = gc.isenabled()
    gc.disable()
    return collecting


def resume_collection(collecting: bool) -> None:
    """End what `pause_collection` began."""
    if collecting:
        gc.enable()


def grown(values: array[int], typecode: str, room: int) -> array[int]:
    """A copy of `values` with room for `room` of them, the new ones zero."""
    grown = array(typecode)
    grown.frombytes(memoryview(values).cast("B"))
    grown.frombytes(bytes((room - len(values)) * grown.itemsize))
    return grown


class Slab:
    """Slots with a deadline, an item and two links each.

    All operations are O(1); `take_slot` and `reserve` are O(1) amortised, for the arrays double as they fill.
    Memory: 20 bytes a slot and a pointer for the item.
    """

    __slots__ = ("_free", "_fresh", "_room", "deadline", "generation", "items", "next_slot", "prev_slot")

    def __init__(self) -> None:
        self._room = _FIRST_ROOM
        self._free = -1  # head of the free list, threaded through next_slot; -1 ends it
        self._fresh = 0  # slots from here on have never been used
        self.next_slot = array("i", bytes(4 * _FIRST_ROOM))
        self.prev_slot = array("i", bytes(4 * _FIRST_ROOM))
        self.generation = array("i", bytes(4 * _FIRST_ROOM))
        self.deadline = array("q", bytes(8 * _FIRST_ROOM))
        self.items: list[object] = [None] * _FIRST_ROOM

    # -- slots ---------------------------------------------------------------------------------------------

    def take_slot(self, deadline: int, item: object) -> int:
        """A live slot on a list of its own, holding `deadline` and `item`."""
        reused = self._free >= 0
        if not reused and self._fresh == self._room:
            self._grow(self._fresh + 1)
        slot = self._free if reused else self._fresh
        self.deadline[slot] = deadline  # raises, with nothing taken, for what is no integer
        if reused:
            self._free = self.next_slot[slot]
        else:
            self._fresh = slot + 1
        self.generation[slot] = (self.generation[slot] + 1) & _GENERATION_MASK
        self.next_slot[slot] = slot
        self.prev_slot[slot] = slot
        self.items[slot] = item
        return slot

    def release(self, slot: int) -> object:
        """Unlink a live slot, free it, and hand back its item (which the slab no longer refers to)."""
        self.unlink(slot)
        item = self.items[slot]
        self.items[slot] = None
        self.generation[slot] = (self.generation[slot] + 1) & _GENERATION_MASK
        self.next_slot[slot] = self._free
        self._free = slot
        return item

    def reserve(self, count: int) -> int:
        """`count` neighbouring slots to serve as sentinels, for good; returns the first. Each is an empty list."""
        first = self._fresh
        if first + count > self._room:
            self._grow(first + count)
        self._fresh = first + count
        for slot in range(first, first + count):
            self.next_slot[slot] = slot
            self.prev_slot[slot] = slot
            self.deadline[slot] = -1
        return first

    def handle(self, slot: int) -> int:
        """The handle of a live slot."""
        generation: int = self.generation[slot]
        return (generation << 32) | slot

    def find(self, handle: int) -> int:
        """The live slot of `handle`, or -1 when its task has ended (or the handle was never given out)."""
        slot = handle & _SLOT_MASK
        generation = handle >> 32
        if slot < self._fresh and generation & 1 and self.generation[slot] == generation:
            return slot
        return -1

    def _grow(self, at_least: int) -> None:
        room = self._room
        while room < at_least:
            room *= 2
        if room > 1 << 30:
            raise OverflowError(f"a wheel holds at most {1 << 30:,} pending tasks")
        collecting = pause_collection()
        try:
            self.items.extend([None] * (room - self._room))
            self.next_slot = grown(self.next_slot, "i", room)
            self.prev_slot = grown(self.prev_slot, "i", room)
            self.generation = grown(self.generation, "i", room)
            self.deadline = grown(self.deadline, "q", room)
            self._room = room
        finally:
            resume_collection(collecting)

    # -- circular doubly linked lists ----------------------------------------------------------------------

    def is_empty(self, sentinel: int) -> bool:
        """Whether nothing but the sentinel is on its list."""
        return self.next_slot[sentinel] == sentinel

    def unlink(self, slot: int) -> None:
        """Take `slot` off whatever list it is on and leave it on a list of its own."""
        after = self.next_slot[slot]
        before = self.prev_slot[slot]
        self.next_slot[before] = after
        self.prev_slot[after] = before
        self.next_slot[slot] = slot
        self.prev_slot[slot] = slot

    def push_back(self, sentinel: int, slot: int) -> None:
        """Put `slot`, which is on a list of its own, last on the sentinel's list."""
        last = self.prev_slot[sentinel]
        self.next_slot[last] = slot
        self.prev_slot[slot] = last
        self.next_slot[slot] = sentinel
        self.prev_slot[sentinel] = slot

    def push_front(self, sentinel: int, slot: int) -> None:
        """Put `slot`, which is on a list of its own, first on the sentinel's list."""
        self.push_back(self.next_slot[sentinel], slot)

    def move_all(self, source: int, target: int) -> None:
        """Move every slot of one sentinel's list to another's, which is empty, in order. O(1)."""
        first = self.next_slot[source]
        if first == source:
            return
        last = self.prev_slot[source]
        self.next_slot[target] = first
        self.prev_slot[first] = target
        self.prev_slot[target] = last
        self.next_slot[last] = target
        self.next_slot[source] = source
        self.prev_slot[source] = source

    # -- introspection -------------------------------------------------------------------------------------

    def members(self, sentinel: int) -> list[int]:
        """The slots on the sentinel's list, first to last. O(their number)."""
        slots = []
        slot = self.next_slot[sentinel]
        while slot != sentinel:
            slots.append(slot)
            slot = self.next_slot[slot]
        return slots

    def live_slots(self) -> list[int]:
        """Every slot that carries a task, by slot number. O(slots ever used)."""
        return [slot for slot in range(self._fresh) if self.generation[slot] & 1]

    def _check(self) -> None:
        """Assert what must hold between any two calls. O(slots ever used); for tests."""
        assert len(self.items) == self._room
        assert len(self.next_slot) == len(self.prev_slot) == self._room
        assert len(self.generation) == len(self.deadline) == self._room
        free = set()
        slot = self._free
        while slot >= 0:
            assert slot not in free, f"slot {slot} is on the free list twice"
            assert not self.generation[slot] & 1, f"slot {slot} is live and on the free list"
            free.add(slot)
            slot = self.next_slot[slot]
        for slot in range(self._fresh):
            if slot in free:
                assert self.items[slot] is None, f"free slot {slot} still holds {self.items[slot]!r}"
                continue
            after = self.next_slot[slot]
            before = self.prev_slot[slot]
            assert self.prev_slot[after] == slot, f"slot {slot} is not its successor's predecessor"
            assert self.next_slot[before] == slot, f"slot {slot} is not its predecessor's successor"
            if not self.generation[slot] & 1:
                assert self.items[slot] is None, f"sentinel {slot} holds an item"
