"""Numbers for keys and ids: two hashes of each pair of texts, the second for when the first is not enough.

The seeds are drawn anew for each call of `resolve`, so that nobody can make keys that are mixed up; for others the
chance is below 10**-19 for a billion keys. Nothing is kept of a key, so keys cost no memory, and threads share nothing.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyance.engine.hashing import hash_texts

__all__ = ["Integers", "PairHash"]

Integers = npt.NDArray[np.int64]
_Unsigned = npt.NDArray[np.uint64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_HALF: Final = np.uint64(32)


class PairHash:
    """A hash of pairs of texts: a key and its instance, an id and its instance."""

    def __init__(self) -> None:
        self._first = secrets.randbits(64)
        self._second = secrets.randbits(64)

    def __call__(self, ones: pa.ChunkedArray, others: pa.ChunkedArray) -> Integers:
        """Return a number for each pair. No value may be null. O(bytes), of a dictionary those of its values."""
        one, other = _hashes(ones, self._first), _hashes(others, self._second)
        both = (one + _GOLDEN) * _GOLDEN ^ other  # in this order: a pair the other way round is another
        both ^= both >> _HALF
        both *= _GOLDEN
        return both.view(np.int64)


def _hashes(texts: pa.ChunkedArray, seed: int) -> _Unsigned:
    found = [np.empty(0, np.uint64)]
    for chunk in texts.chunks:
        if pa.types.is_dictionary(chunk.type):
            found.append(_hashes_of(chunk.dictionary, seed)[chunk.indices.to_numpy(zero_copy_only=False)])
        else:
            found.append(_hashes_of(chunk, seed))
    return np.concatenate(found)


def _hashes_of(texts: pa.Array, seed: int) -> _Unsigned:
    texts = texts.cast(pa.large_string())
    hashes = np.empty(len(texts), np.uint64)
    if len(texts):
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
        hash_texts(ends.data, data or b"", seed, hashes.data)
    return hashes
