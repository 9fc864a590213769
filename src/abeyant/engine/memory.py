"""Read access to the slab's arrays: plain indexing when interpreted, raw memory when compiled (memory.pxd)."""

from __future__ import annotations

from array import array

__all__ = ["GENERATION", "NEXT", "PREV", "STRIDE", "fetch_int", "fetch_long", "ints", "longs"]

# The fields of one slot in a slab's links: offsets from `STRIDE * slot`.
NEXT = 0
PREV = 1
GENERATION = 2
STRIDE = 3


def ints(values: array[int]) -> array[int]:
    """Return `values`, an array of typecode `i`; compiled, a pointer to its elements."""
    return values


longs = ints  # of typecode `q`


def fetch_int(values: array[int], index: int) -> None:
    """Prefetch an element into the processor's cache; interpreted, do nothing."""


fetch_long = fetch_int
