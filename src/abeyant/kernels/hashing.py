"""Hash each text of an Arrow column to two 64-bit numbers, with seeds.

The hash is SipHash-1-3 (Aumasson and Bernstein, 2012; one round per word, three at the end), which CPython uses for
strings and Rust for hash tables: nobody can construct texts that collide without knowing the seed. Two hashes with
different seeds distinguish a billion texts, except with probability 10**-19.

O(bytes); eight bytes are read at a time. When compiled, `hash_texts` releases the global interpreter lock.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.kernels.buffers import integers, same_length

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

SEED = 32
"""Length of a seed in bytes: 16 for each of the two hashes."""

_FIRST = 0x736F6D6570736575  # C constants when compiled; the letters of SipHash's paper
_SECOND = 0x646F72616E646F6D
_THIRD = 0x6C7967656E657261
_FOURTH = 0x7465646279746573
_LAST = 3  # rounds after the last word


def hash_texts(offsets: ReadableBuffer, data: ReadableBuffer, seed: bytes, hashes: WriteableBuffer) -> None:
    """Write into `hashes` two numbers per text: text n is the bytes [offsets[n], offsets[n + 1]) of `data`.

    `offsets` has one integer more than there are texts: of 32 bits as in Arrow's string type, or of 64 as in its
    large_string. `hashes` has two 64-bit integers per text, `seed` has `SEED` bytes. Raises ValueError for offsets that
    are not within `data` or decrease, or for another length of `seed` or `hashes`; TypeError for other kinds of buffer.
    """
    ends = memoryview(offsets)
    ends = ends.cast("B").cast("i") if ends.format == "i" and len(ends) else integers(offsets, "offsets")
    if not len(ends):
        raise ValueError("offsets is empty: it must have one element more than there are texts")
    if len(seed) != SEED:
        raise ValueError(f"seed has {len(seed)} bytes, expected {SEED}")
    out = memoryview(hashes).cast("B").cast("Q")
    same_length("hashes", out, "offsets minus 1, times 2", 2 * (len(ends) - 1))
    text = memoryview(data).cast("B")
    none = memoryview(array("q" if ends.format == "i" else "i"))
    narrow, wide = (ends, none) if ends.format == "i" else (none, ends)
    if not _hash(narrow, wide, text if len(text) else memoryview(b"\0"), len(text), memoryview(seed).cast("Q"), out):
        raise ValueError(f"offsets must be from 0 to {len(text)}, the size of data, and must not decrease")


def _hash(narrow: memoryview, wide: memoryview, text: memoryview, size: int, seed: memoryview, out: memoryview) -> bool:
    """Hash all texts and return True; stop and return False at the first offset that decreases or exceeds the data."""
    is_narrow = len(narrow) > 0
    begin = narrow[0] if is_narrow else wide[0]
    if begin < 0:
        return False
    with cython.nogil:
        for number in range(len(out) // 2):
            end = narrow[number + 1] if is_narrow else wide[number + 1]
            if end < begin or end > size:
                return False
            _sip(text, begin, end, seed, out, 2 * number)
            begin = end
    return begin <= size


def _sip(text: memoryview, begin: int, end: int, seed: memoryview, out: memoryview, to: int) -> None:
    """Write both hashes of a text. The processor computes them in parallel, so they take little longer than one."""
    every = 0xFFFFFFFFFFFFFFFF  # a local variable, so that a C compiler sees that masking changes nothing
    one = seed[0] ^ _FIRST
    two = seed[1] ^ _SECOND
    three = seed[0] ^ _THIRD
    four = seed[1] ^ _FOURTH
    first = seed[2] ^ _FIRST
    second = seed[3] ^ _SECOND
    third = seed[2] ^ _THIRD
    fourth = seed[3] ^ _FOURTH
    words = (end - begin) >> 3
    last = _last_word(text, begin + 8 * words, end) | ((end - begin) & 0xFF) << 56
    for number in range(words + 1 + _LAST):
        if number < words:
            word = _word(text, begin + 8 * number)
        elif number == words:
            word = last
        else:
            word = 0
            if number == words + 1:
                three ^= 0xFF
                third ^= 0xFF
        four ^= word
        fourth ^= word
        one = (one + two) & every
        first = (first + second) & every
        three = (three + four) & every
        third = (third + fourth) & every
        two = ((two << 13) | (two >> 51)) & every ^ one
        second = ((second << 13) | (second >> 51)) & every ^ first
        four = ((four << 16) | (four >> 48)) & every ^ three
        fourth = ((fourth << 16) | (fourth >> 48)) & every ^ third
        one = ((one << 32) | (one >> 32)) & every
        first = ((first << 32) | (first >> 32)) & every
        three = (three + two) & every
        third = (third + second) & every
        one = (one + four) & every
        first = (first + fourth) & every
        two = ((two << 17) | (two >> 47)) & every ^ three
        second = ((second << 17) | (second >> 47)) & every ^ third
        four = ((four << 21) | (four >> 43)) & every ^ one
        fourth = ((fourth << 21) | (fourth >> 43)) & every ^ first
        three = ((three << 32) | (three >> 32)) & every
        third = ((third << 32) | (third >> 32)) & every
        one ^= word
        first ^= word
    out[to] = one ^ two ^ three ^ four
    out[to + 1] = first ^ second ^ third ^ fourth


def _word(text: memoryview, begin: int) -> int:
    """Return eight bytes from `begin` on as a little-endian integer."""
    word = 0
    for place in range(8):  # exactly eight, which a C compiler turns into one load
        byte = text[begin + place]
        word |= byte << (8 * place)
    return word


def _last_word(text: memoryview, begin: int, end: int) -> int:
    """Return the bytes from `begin` to `end`, fewer than eight, as a little-endian integer."""
    if begin == end:
        return 0
    if end >= 8:  # one load, of the eight bytes that end there
        return _word(text, end - 8) >> (8 * (8 - end + begin))
    word = 0
    for place in range(end - begin):
        byte = text[begin + place]
        word |= byte << (8 * place)
    return word
