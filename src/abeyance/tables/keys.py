"""Numbers for the keys of events: exact, where a hash would only be likely to tell two keys apart.

A key is an instance and a name. Each of both gets a number as it first comes; the two in one integer, times an odd
constant, are the key's *place*. That is another number for each key, and spread over all 64 bits, as the engine likes.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Integers", "Keys"]

Integers = npt.NDArray[np.int64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio; odd, so a product by it can be undone


class Keys:
    """The keys seen so far. Any thread may ask at any time."""

    def __init__(self) -> None:
        self._instances = _Names()
        self._names = _Names()

    def learn(self, instances: pa.ChunkedArray, names: pa.ChunkedArray) -> Integers:
        """Return the place of each key, new ones included. No value may be null."""
        return _place(self._instances.learn(instances), self._names.learn(names))

    def places(self, instances: pa.ChunkedArray, names: pa.ChunkedArray) -> Integers:
        """Return the place of each key; what was never learnt gets one that no event has."""
        return _place(self._instances.numbers(instances), self._names.numbers(names))


class _Names:
    """A number for each text, from 1 on; 0 for what was not seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the one below; whoever holds it waits for nothing
        self._known = pa.array([], pa.large_string())

    def learn(self, texts: pa.ChunkedArray) -> Integers:
        own, indices = _distinct(texts)
        with self._lock:
            fresh = own.filter(pc.invert(pc.is_in(own, value_set=self._known)))
            if len(fresh):
                self._known = pa.concat_arrays([self._known, fresh])
            known = self._known
        return _number(own, known)[indices]

    def numbers(self, texts: pa.ChunkedArray) -> Integers:
        own, indices = _distinct(texts)
        with self._lock:
            known = self._known
        return _number(own, known)[indices]


def _distinct(texts: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Return the different texts, and for each row which of them it has."""
    if not pa.types.is_dictionary(texts.type):
        texts = texts.cast(pa.large_string()).dictionary_encode()
    encoded = texts.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], texts.type)
    return encoded.dictionary.cast(pa.large_string()), encoded.indices.to_numpy(zero_copy_only=False)


def _number(texts: pa.Array, known: pa.Array) -> Integers:
    found = pc.fill_null(pc.index_in(texts, value_set=known), -1).cast(pa.int64())
    return np.asarray(found.to_numpy(zero_copy_only=False)) + 1


def _place(instances: Integers, names: Integers) -> Integers:
    both = (instances.view(np.uint64) << np.uint64(32)) | names.view(np.uint64)
    return (both * _GOLDEN).view(np.int64)
