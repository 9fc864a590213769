"""Represent keys and ids by two 64-bit hashes of (instance, key) or (instance, op_id), 128 bits in all.

The first hash, the *place*, decides the shard and the order; the second, the *identity*, distinguishes keys with the
same place. Seeds are random for each call of `resolve`, so that nobody can construct colliding keys; the probability of
a collision is below 10**-19 for a billion keys. No key is stored, so keys cost no memory and threads share no state.
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
_EACH: Final[_Numbers] = np.empty(0, np.int32)  # means: row n has hash n


class Scratch(threading.local):
    """Reusable buffers, one per thread and name: allocating new ones costs more than the work done in them."""

    def __init__(self) -> None:
        self._rooms: dict[str, Integers] = {}

    def __call__(self, name: str, length: int) -> Integers:
        """Return a buffer of `length` integers, uninitialized, valid until this thread's next call with the name."""
        room = self._rooms.get(name, _NONE)
        if len(room) < length:
            room = self._rooms[name] = np.empty(length, np.int64)
        return room[:length]


def draw_seed() -> bytes:
    """Return a random seed for a `PairHash`."""
    return secrets.token_bytes(2 * SEED)


class PairHash:
    """A hash function for pairs of texts: instance and key, or instance and id.

    `seed` comes from `draw_seed` (default: a new one). The same seed gives the same hashes.
    """

    def __init__(self, seed: bytes | None = None) -> None:
        seed = seed or draw_seed()
        self._first, self._second = seed[:SEED], seed[SEED:]
        self._scratch = Scratch()

    def __call__(self, ones: pa.ChunkedArray, others: pa.ChunkedArray) -> tuple[Integers, Integers]:
        """Return the place and the identity (see above) of each pair (ones[n], others[n]). No text may be null.

        This thread's next call overwrites both arrays. O(bytes); a dictionary-encoded column costs its dictionary only.
        """
        one, one_of = self._hashes(ones, self._first, "ones")
        other, other_of = self._hashes(others, self._second, "others")
        places, identities = (self._scratch(name, len(ones)) for name in ("places", "identities"))
        pair_hashes(one.data, one_of.data, other.data, other_of.data, places.data, identities.data)
        return places, identities

    def _hashes(self, texts: pa.ChunkedArray, seed: bytes, name: str) -> tuple[Integers, _Numbers]:
        """Return two hashes for each text, and for each row the index of its text; no indices if row n has text n."""
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
    """Return for each row the index of its text in the dictionary; without a dictionary, the row's own number."""
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
