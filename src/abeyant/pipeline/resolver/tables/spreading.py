"""Shards go evenly over the partitions of a shuffle.

Spark puts a row where the hash of its key says. Of 1,024 shards over 400 partitions one would get nine, and 36 none.
The job would wait for that one, 3.5 times as long as it needs. So not the shard is hashed but a number in its place,
whose hash leads to the partition that is next in turn.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["spread"]

_SEED: Final = 42
_Words = npt.NDArray[np.uint32]


def spread(shard: str, shards: int, partitions: int) -> str:
    """Return what to shuffle by in place of `shard`, an SQL expression of 0 to `shards` - 1.

    With that many partitions, none gets a shard more than another. With others, as many as chance gives it.
    """
    numbers = ",".join(map(str, _numbers(partitions)[:shards].tolist()))
    return f"int(split('{numbers}', ',')[int(({shard}) % {partitions})])"


@cache
def _numbers(partitions: int) -> npt.NDArray[np.int64]:
    """Return the least number for each partition that Spark's hash sends there. O(partitions log partitions)."""
    found = np.full(partitions, -1)
    tried = 0
    while (found < 0).any():
        numbers = np.arange(tried, tried + 8 * partitions)
        placed, firsts = np.unique(_hash(numbers) % partitions, return_index=True)
        new = found[placed] < 0
        found[placed[new]] = numbers[firsts[new]]
        tried += len(numbers)
    return found


def _hash(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return Spark's `hash` of each number as an `int`: 32-bit MurmurHash3 (Austin Appleby) of one word."""
    words = _rotated(numbers.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    mixed = _rotated(words ^ np.uint32(_SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)  # the length in bytes
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (mixed ^ (mixed >> np.uint32(16))).view(np.int32)


def _rotated(words: _Words, bits: int) -> _Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
