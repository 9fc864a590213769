"""Numbers for keys and ids: two hashes of each pair of texts, the second for when the first is not enough.

The seeds are drawn anew for each call of `resolve`, so that nobody can make keys that are mixed up; for others the
chance is below 10**-19 for a billion keys. Nothing is kept of a key, so keys cost no memory, and threads share nothing.
"""

from __future__ import annotations

import secrets
import threading
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyant.kernels.dealing import pair_hashes
from abeyant.kernels.hashing import SEED, hash_texts

__all__ = ["Integers", "PairHash", "Scratch", "draw_seed"]

Integers = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.int32]

_NONE: Final[Integers] = np.empty(0, np.int64)
_EACH: Final[_Numbers] = np.empty(0, np.int32)  # row n has hash n


class Scratch(threading.local):
    """Room for integers that is used anew, one for each thread: fresh memory costs more than what is done in it."""

    def __init__(self) -> None:
        self._rooms: dict[str, Integers] = {}

    def __call__(self, name: str, length: int) -> Integers:
        """Return so many integers, whatever they are, until the thread's next call with this name."""
        room = self._rooms.get(name, _NONE)
        if len(room) < length:
            room = self._rooms[name] = np.empty(length, np.int64)
        return room[:length]


def draw_seed() -> bytes:
    """Return a seed of a `PairHash` that nobody knows."""
    return secrets.token_bytes(2 * SEED)


class PairHash:
    """A hash of pairs of texts: a key and its instance, an id and its instance.

    `seed` is of `draw_seed`, and a new one unless told: who has the same has the same hashes.
    """

    def __init__(self, seed: bytes | None = None) -> None:
        seed = seed or draw_seed()
        self._first, self._second = seed[:SEED], seed[SEED:]
        self._scratch = Scratch()

    def __call__(self, ones: pa.ChunkedArray, others: pa.ChunkedArray) -> tuple[Integers, Integers]:
        """Return two numbers for each pair. No value may be null. O(bytes), of a dictionary those of its values.

        They are good until this thread's next call.
        """
        one, one_of = self._hashes(ones, self._first, "ones")
        other, other_of = self._hashes(others, self._second, "others")
        places, identities = (self._scratch(name, len(ones)) for name in ("places", "identities"))
        pair_hashes(one.data, one_of.data, other.data, other_of.data, places.data, identities.data)
        return places, identities

    def _hashes(self, texts: pa.ChunkedArray, seed: bytes, name: str) -> tuple[Integers, _Numbers]:
        """Return hashes, two a text, and which of them each row has."""
        chunks = [chunk for chunk in texts.chunks if len(chunk)]
        values = [chunk.dictionary if _in_dictionary(chunk) else chunk for chunk in chunks]
        hashes = self._scratch(name, 2 * sum(map(len, values)))
        ends = list(accumulate(map(len, values), initial=0))
        for some, begin, end in zip(values, ends[:-1], ends[1:], strict=True):
            _hash(some, seed, hashes[2 * begin : 2 * end])
        if not any(map(_in_dictionary, chunks)):
            return hashes, _EACH
        return hashes, np.concatenate(
            [_numbers(chunk) + np.int32(begin) for chunk, begin in zip(chunks, ends[:-1], strict=True)]
        )


def _numbers(chunk: pa.Array) -> _Numbers:
    """Return for each row the number of its text in the dictionary, or of the row where there is none."""
    if _in_dictionary(chunk):
        return np.asarray(chunk.indices.cast(pa.int32()).to_numpy())
    return np.arange(len(chunk), dtype=np.int32)


def _in_dictionary(chunk: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(chunk.type))


def _hash(texts: pa.Array, seed: bytes, hashes: Integers) -> None:
    if not len(texts):
        return
    if not pa.types.is_string(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    kind = np.dtype(np.int32 if pa.types.is_string(texts.type) else np.int64)
    ends = np.frombuffer(offsets, kind, len(texts) + 1, texts.offset * kind.itemsize)
    hash_texts(ends.data, data or b"", seed, hashes.data)
