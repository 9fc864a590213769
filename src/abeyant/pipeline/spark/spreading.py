"""Spread shards evenly over the partitions of a shuffle.

Spark chooses a row's partition by the hash of its key. Of 400 partitions for 1,024 shards, one would get nine shards,
and 36 none. The job would wait for the partition with nine, 3.5 times as long as needed. So in place of the shard,
Spark is given a number whose hash leads to the next partition in turn.
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
    """Return the SQL expression to shuffle by in place of `shard`, an expression with the values 0 to `shards` - 1.

    If the shuffle has this number of `partitions`, their numbers of shards differ by at most one. With another number
    of partitions, chance decides.
    """
    numbers = ",".join(map(str, _numbers(partitions)[:shards].tolist()))
    return f"int(split('{numbers}', ',')[int(({shard}) % {partitions})])"


@cache
def _numbers(partitions: int) -> npt.NDArray[np.int64]:
    """Return for each partition the least number that Spark's hash sends to it. O(partitions log partitions)."""
    result = np.full(partitions, -1)
    start = 0
    while (result < 0).any():
        numbers = np.arange(start, start + 8 * partitions)
        placed, firsts = np.unique(_hash(numbers) % partitions, return_index=True)
        new = result[placed] < 0
        result[placed[new]] = numbers[firsts[new]]
        start += len(numbers)
    return result


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
