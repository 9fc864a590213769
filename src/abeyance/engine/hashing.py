"""Numbers for texts: two 64-bit hashes of each text of an Arrow column, with seeds.

SipHash-1-3 (Aumasson and Bernstein, 2012; one round a word, three at the end), which CPython takes for its strings and
Rust for its tables: whoever does not know the seed cannot make texts that collide. Two hashes with seeds of their own
tell a billion texts apart but for a chance of 10**-19.

O(bytes), eight at a time. Compiled, it leaves the interpreter's lock to other threads.
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

SEED = 32
"""Bytes of a seed: 16 for each of the two hashes."""

_FIRST = 0x736F6D6570736575  # C constants when compiled; the letters of SipHash's paper
_SECOND = 0x646F72616E646F6D
_THIRD = 0x6C7967656E657261
_FOURTH = 0x7465646279746573
_ALL = 0xFFFFFFFFFFFFFFFF
_LAST = 3  # rounds after the last word


def hash_texts(offsets: ReadableBuffer, data: ReadableBuffer, seed: bytes, hashes: WriteableBuffer) -> None:
    """Write into `hashes` two numbers per text: text n is the bytes [offsets[n], offsets[n + 1]) of `data`.

    `offsets` has one 64-bit integer more than there are texts, as Arrow's large text has; `hashes` are twice as many
    64-bit integers as there are texts. `seed` is of `SEED` bytes. Raises ValueError for offsets that are not within
    `data` or go back, or for another length of `seed` or `hashes`; TypeError for other kinds of buffer.
    """
    ends = integers(offsets, "offsets")
    if not len(ends):
        raise ValueError("offsets is empty: it has one element more than there are texts")
    if len(seed) != SEED:
        raise ValueError(f"seed has {len(seed)} bytes, expected {SEED}")
    out = memoryview(hashes).cast("B").cast("Q")
    same_length("hashes", out, "offsets, less one, twice,", 2 * (len(ends) - 1))
    text = memoryview(data).cast("B")
    if not _within(ends, len(text)):
        raise ValueError(f"offsets go back, or beyond the {len(text)} bytes of data")
    _hash(ends, text if len(text) else memoryview(b"\0"), memoryview(seed).cast("Q"), out)


def _within(ends: memoryview, size: int) -> bool:
    last = 0
    for position in range(len(ends)):
        if ends[position] < last:
            return False
        last = ends[position]
    return last <= size


def _hash(ends: memoryview, text: memoryview, seed: memoryview, out: memoryview) -> None:
    with cython.nogil:
        for number in range(len(ends) - 1):
            out[2 * number] = _sip(text, ends[number], ends[number + 1], seed[0], seed[1])
            out[2 * number + 1] = _sip(text, ends[number], ends[number + 1], seed[2], seed[3])


def _sip(text: memoryview, begin: int, end: int, seed: int, further_seed: int) -> int:
    first = seed ^ _FIRST
    second = further_seed ^ _SECOND
    third = seed ^ _THIRD
    fourth = further_seed ^ _FOURTH
    words = (end - begin) >> 3
    for number in range(words + 1 + _LAST):
        if number <= words:
            word = _word(text, begin + 8 * number, end)
            if number == words:
                word |= ((end - begin) & 0xFF) << 56
        else:
            word = 0
            if number == words + 1:
                third ^= 0xFF
        fourth ^= word
        first = (first + second) & _ALL
        third = (third + fourth) & _ALL
        second = ((second << 13) | (second >> 51)) & _ALL ^ first
        fourth = ((fourth << 16) | (fourth >> 48)) & _ALL ^ third
        first = ((first << 32) | (first >> 32)) & _ALL
        third = (third + second) & _ALL
        first = (first + fourth) & _ALL
        second = ((second << 17) | (second >> 47)) & _ALL ^ third
        fourth = ((fourth << 21) | (fourth >> 43)) & _ALL ^ first
        third = ((third << 32) | (third >> 32)) & _ALL
        first ^= word
    return first ^ second ^ third ^ fourth


def _word(text: memoryview, begin: int, end: int) -> int:
    """The next eight bytes as a number, the first the lowest; zeros where the text has ended."""
    word = 0
    if end - begin >= 8:
        for place in range(8):  # so many that a C compiler sees one load in it
            byte = text[begin + place]
            word |= byte << (8 * place)
        return word
    for place in range(end - begin):
        byte = text[begin + place]
        word |= byte << (8 * place)
    return word
