"""Numbers for keys and ids: two hashes of each pair of texts, the second for when the first is not enough.

The seeds are drawn anew for each call of `resolve`, so that nobody can make keys that are mixed up; for others the
chance is below 10**-19 for a billion keys. Nothing is kept of a key, so keys cost no memory, and threads share nothing.
"""

from __future__ import annotations

import secrets
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyance.engine.dealing import pair_hashes
from abeyance.engine.hashing import SEED, hash_texts

__all__ = ["Integers", "PairHash"]

Integers = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.int32]
Column = TypeVar("Column", Integers, _Numbers)

_NONE: Final[Integers] = np.empty(0, np.int64)
_EACH: Final[_Numbers] = np.empty(0, np.int32)  # row n has hash n


class PairHash:
    """A hash of pairs of texts: a key and its instance, an id and its instance."""

    def __init__(self) -> None:
        self._first = secrets.token_bytes(SEED)
        self._second = secrets.token_bytes(SEED)

    def __call__(self, ones: pa.ChunkedArray, others: pa.ChunkedArray) -> tuple[Integers, Integers]:
        """Return two numbers for each pair. No value may be null. O(bytes), of a dictionary those of its values."""
        one, one_of = _hashes(ones, self._first)
        other, other_of = _hashes(others, self._second)
        places, identities = np.empty(len(ones), np.int64), np.empty(len(ones), np.int64)
        pair_hashes(one.data, one_of.data, other.data, other_of.data, places.data, identities.data)
        return places, identities


def _hashes(texts: pa.ChunkedArray, seed: bytes) -> tuple[Integers, _Numbers]:
    """Return hashes, two a text, and which of them each row has."""
    chunks = [chunk for chunk in texts.chunks if len(chunk)]
    found = [_hashes_of(chunk.dictionary if _in_dictionary(chunk) else chunk, seed) for chunk in chunks]
    if not any(map(_in_dictionary, chunks)):
        return _joined(found, _NONE), _EACH
    numbers: list[_Numbers] = []
    before = 0
    for chunk, hashes in zip(chunks, found, strict=True):
        own = (
            chunk.indices.cast(pa.int32()).to_numpy()
            if _in_dictionary(chunk)
            else np.arange(len(chunk), dtype=np.int32)
        )
        numbers.append(own + np.int32(before))
        before += len(hashes) // 2
    return _joined(found, _NONE), _joined(numbers, _EACH)


def _in_dictionary(chunk: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(chunk.type))


def _joined(parts: list[Column], none: Column) -> Column:
    return parts[0] if len(parts) == 1 else np.concatenate([none, *parts])


def _hashes_of(texts: pa.Array, seed: bytes) -> Integers:
    texts = texts.cast(pa.large_string())
    hashes = np.empty(2 * len(texts), np.int64)
    if len(texts):
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
        hash_texts(ends.data, data or b"", seed, hashes.data)
    return hashes
