"""The delay queue: a wheel's buckets by expiration, the time at which a bucket comes up.

A binary heap (Williams, "Algorithm 232: Heapsort", 1964) over two parallel integer arrays. It holds buckets, not
tasks, so it stays small (at most levels x wheel size) and is touched once per bucket, not once per task: this is why
such a queue drives a timing wheel (Apache Kafka's `SystemTimer`). No Python object is made per entry, so the garbage
collector has no occasion to run inside an operation. The queue belongs to a wheel, and is used under the lock of the
wheel's owner.
"""

from __future__ import annotations

from array import array

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.engine.slab import grown

_FIRST_ROOM = 64
_FOREVER = (1 << 63) - 1


class DelayQueue:
    """A priority queue of buckets by expiration; of two buckets with the same one the lower number comes first."""

    __slots__ = ("_bucket", "_expiration", "_pushed", "_size")

    def __init__(self) -> None:
        self._size = 0
        self._pushed = 0  # since the beginning
        self._expiration = array("q", bytes(8 * _FIRST_ROOM))
        self._bucket = array("q", bytes(8 * _FIRST_ROOM))

    def __len__(self) -> int:
        return self._size

    def first_expiration(self) -> int:
        """Return the earliest expiration; the queue must not be empty. O(1)."""
        return self._expiration[0]

    def first_bucket(self) -> int:
        """Return the earliest bucket; the queue must not be empty. O(1)."""
        return self._bucket[0]

    def second_expiration(self) -> int:
        """Return the second earliest expiration, or the largest integer if there is none. O(1)."""
        if self._size < 2:
            return _FOREVER
        if self._size > 2 and self._expiration[2] < self._expiration[1]:
            return self._expiration[2]
        return self._expiration[1]

    def push(self, expiration: int, bucket: int) -> None:
        """Add a bucket with its expiration. O(log n)."""
        if self._size == len(self._expiration):
            self._grow()
        child = self._size
        self._size = child + 1
        self._pushed += 1
        while child > 0:
            parent = (child - 1) >> 1
            if self._expiration[parent] < expiration or (
                self._expiration[parent] == expiration and self._bucket[parent] < bucket
            ):
                break
            self._expiration[child] = self._expiration[parent]
            self._bucket[child] = self._bucket[parent]
            child = parent
        self._expiration[child] = expiration
        self._bucket[child] = bucket

    def pop(self) -> int:
        """Remove and return the earliest bucket; the queue must not be empty. O(log n)."""
        first = self._bucket[0]
        size = self._size - 1
        self._size = size
        expiration = self._expiration[size]
        bucket = self._bucket[size]
        parent = 0
        while True:
            child = 2 * parent + 1
            if child >= size:
                break
            if child + 1 < size and self._precedes(child + 1, child):
                child += 1
            if expiration < self._expiration[child] or (
                expiration == self._expiration[child] and bucket < self._bucket[child]
            ):
                break
            self._expiration[parent] = self._expiration[child]
            self._bucket[parent] = self._bucket[child]
            parent = child
        self._expiration[parent] = expiration
        self._bucket[parent] = bucket
        return first

    def _precedes(self, one: int, other: int) -> bool:
        if self._expiration[one] == self._expiration[other]:
            return self._bucket[one] < self._bucket[other]
        return self._expiration[one] < self._expiration[other]

    def _grow(self) -> None:
        room = 2 * len(self._expiration)
        paused = pause_collection()
        try:
            self._expiration = grown(self._expiration, "q", room)
            self._bucket = grown(self._bucket, "q", room)
        finally:
            resume_collection(paused)

    def entries(self) -> list[tuple[int, int]]:
        """Return every (expiration, bucket), in the order of the heap. O(n)."""
        return [(self._expiration[i], self._bucket[i]) for i in range(self._size)]

    def _check(self) -> None:
        """Assert the heap's order. O(n); for tests."""
        for child in range(1, self._size):
            assert not self._precedes(child, (child - 1) >> 1), f"entry {child} precedes its parent"
