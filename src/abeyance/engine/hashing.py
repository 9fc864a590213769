"""Numbers for texts: a 64-bit hash of each text of an Arrow column, with a seed.

FNV-1a (Fowler, Noll and Vo) from a seed of the caller's, then the finalizer of MurmurHash3, for the uppermost bits have
to be spread too. Two hashes with different seeds tell a billion texts apart but for a chance of 10**-19. That holds for
texts that were not made to collide; a seed that is drawn anew for each use leaves nobody the means to make such.

O(bytes). Compiled, it leaves the interpreter's lock to other threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:
    from abeyance.engine import uncompiled as cython

from abeyance.engine.buffers import integers, same_length

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_PRIME = 0x100000001B3  # C constants when compiled
_FIRST = 0xFF51AFD7ED558CCD
_SECOND = 0xC4CEB9FE1A85EC53
_ALL = 0xFFFFFFFFFFFFFFFF


def hash_texts(offsets: ReadableBuffer, data: ReadableBuffer, seed: int, hashes: WriteableBuffer) -> None:
    """Write into `hashes` a number per text: text n is the bytes [offsets[n], offsets[n + 1]) of `data`.

    `offsets` has one 64-bit integer more than there are texts, as Arrow's large text has; `hashes` are as many 64-bit
    integers as there are texts. `seed` is from 0 to 2**64 - 1. Raises ValueError for offsets that are not within `data`
    or go back, or for another length of `hashes`; TypeError for other kinds of buffer.
    """
    ends = integers(offsets, "offsets")
    if not len(ends):
        raise ValueError("offsets is empty: it has one element more than there are texts")
    out = memoryview(hashes).cast("B").cast("Q")
    same_length("hashes", out, "offsets, less one,", len(ends) - 1)
    text = memoryview(data).cast("B")
    if not _within(ends, len(text)):
        raise ValueError(f"offsets go back, or beyond the {len(text)} bytes of data")
    _hash(ends, text if len(text) else memoryview(b"\0"), seed, out)


def _within(ends: memoryview, size: int) -> bool:
    last = 0
    for position in range(len(ends)):
        if ends[position] < last:
            return False
        last = ends[position]
    return last <= size


def _hash(ends: memoryview, text: memoryview, seed: int, out: memoryview) -> None:
    with cython.nogil:
        for number in range(len(out)):
            value = seed
            for position in range(ends[number], ends[number + 1]):
                value = ((value ^ text[position]) * _PRIME) & _ALL
            value ^= value >> 33
            value = (value * _FIRST) & _ALL
            value ^= value >> 33
            value = (value * _SECOND) & _ALL
            value ^= value >> 33
            out[number] = value
