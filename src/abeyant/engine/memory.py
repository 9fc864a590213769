"""How the slab's arrays are read: as the arrays that they are, by the interpreted engine (compiled: memory.pxd)."""

from __future__ import annotations

from array import array

__all__ = ["GENERATION", "NEXT", "PREV", "STRIDE", "fetch_int", "fetch_long", "ints", "longs"]

# Where in a slab's links the things of one slot are: at `STRIDE * slot` and after it.
NEXT = 0
PREV = 1
GENERATION = 2
STRIDE = 3


def ints(values: array[int]) -> array[int]:
    """The elements of an array of typecode `i`."""
    return values


longs = ints  # of typecode `q`


def fetch_int(values: array[int], index: int) -> None:
    """Have an element brought into the processor's cache, without waiting for it. Only worth it compiled."""


fetch_long = fetch_int
