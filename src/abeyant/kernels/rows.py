"""Sort rows of four integers (place, identity, progress, at) by moving them, bucket by bucket, in the cache.

The order: by place, by identity, from the greatest progress down, from the earliest on. Whole rows of 32 bytes are
moved, because with row numbers each comparison would cost a cache miss.

There are two passes, both by the uppermost bits of the place in which the rows differ. `spread` distributes all rows to
coarse buckets, each of which fits the second-level cache. `sort` distributes the rows of one coarse bucket to buckets
of a few rows, and sorts each of these: by insertion, or by merging where many rows have one place (bucket sort and
merge sort, Knuth, TAOCP 3, 5.2.5 and 5.2.4). O(n) where places are spread, O(k log k) for the k rows of one place, O(k)
if these are sorted already or in reverse, as events in the order of their time mostly are.

Nothing here allocates, so all of it runs without the interpreter's lock.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Integers = memoryview[int] | array[int]

WIDTH = 4  # integers to a row
COARSE = 1 << 14  # rows to a coarse bucket, on the average: 512 kB
_FINE = 4  # rows to a bucket, on the average
_BLOCK = 8  # maximum rows that are sorted by insertion

_WIDTH = WIDTH  # C constants when compiled


def coarse_buckets(count: int) -> int:
    """Return the number of elements that `spread` needs in `ends` for `count` rows; 1 if one `sort` can take all."""
    return count // COARSE + 1


def fine_buckets(count: int) -> int:
    """Return the number of elements that `sort` needs in `ends` for `count` rows."""
    return count // _FINE + 1


def half_place(rows: Integers, row: int) -> int:
    """Return half of a row's place, so that the difference of any two halves is a 64-bit integer."""
    return rows[_WIDTH * row] >> 1


def spread(rows: Integers, target: Integers, ends: Integers) -> int:
    """Copy all `rows` into `target`, grouped by coarse bucket; return the number of buckets.

    `ends` must be zeros, and receives the end of each bucket in `target`.
    """
    return _deal(rows, 0, len(rows) // _WIDTH, target, ends, len(ends))


def sort(rows: Integers, begin: int, end: int, target: Integers, ends: Integers) -> None:
    """Copy the rows [begin, end) to the front of `target`, sorted; `ends` is as long as `fine_buckets` says.

    Overwrites the rows [begin, end) of `rows`, which serve as scratch space for merging.
    """
    buckets = fine_buckets(end - begin)
    for bucket in range(buckets):
        ends[bucket] = 0
    buckets = _deal(rows, begin, end, target, ends, buckets)
    other = rows[_WIDTH * begin : _WIDTH * end]
    low = 0
    for bucket in range(buckets):
        high = ends[bucket]
        if high - low > _BLOCK:
            _sort_many(target, other, low, high)
        else:
            _insert(target, low, high)
        low = high


def _deal(rows: Integers, begin: int, end: int, target: Integers, ends: Integers, buckets: int) -> int:
    """Copy the rows [begin, end) into `target` by bucket, stably; return the number of buckets, at most `buckets`.

    `ends` must be zeros, and receives the end of each bucket in `target`.
    """
    if begin == end:
        return 0
    low = high = half_place(rows, begin)
    for row in range(begin, end):
        place = half_place(rows, row)
        low = min(low, place)
        high = max(high, place)
    shift = 0
    while (high - low) >> shift >= buckets:
        shift += 1
    buckets = ((high - low) >> shift) + 1
    for row in range(begin, end):
        ends[(half_place(rows, row) - low) >> shift] += 1
    to = 0
    for bucket in range(buckets):
        count = ends[bucket]
        ends[bucket] = to
        to += count
    for row in range(begin, end):
        bucket = (half_place(rows, row) - low) >> shift
        _move(rows, row, target, ends[bucket])
        ends[bucket] += 1
    return buckets


def _move(rows: Integers, row: int, target: Integers, to: int) -> None:
    row *= _WIDTH
    to *= _WIDTH
    target[to] = rows[row]
    target[to + 1] = rows[row + 1]
    target[to + 2] = rows[row + 2]
    target[to + 3] = rows[row + 3]


def _is_before(rows: Integers, one: int, other: int) -> bool:
    """Return whether one row comes before another: by key, then the greatest progress first, then the earliest."""
    one *= _WIDTH
    other *= _WIDTH
    if rows[one] != rows[other]:
        return rows[one] < rows[other]
    if rows[one + 1] != rows[other + 1]:
        return rows[one + 1] < rows[other + 1]
    if rows[one + 2] != rows[other + 2]:
        return rows[one + 2] > rows[other + 2]
    return rows[one + 3] < rows[other + 3]


def _sort_many(rows: Integers, other: Integers, low: int, high: int) -> None:
    """Sort [low, high) of `rows`: reverse it if that is enough, else insertion-sort blocks and merge bottom-up."""
    row = low + 1
    while row < high and not _is_before(rows, row, row - 1):
        row += 1
    if row == high:
        return
    if row == low + 1:
        while row < high and _is_before(rows, row, row - 1):
            row += 1
        if row == high:
            _reverse(rows, low, high)
            return
    begin = low
    while begin < high:
        _insert(rows, begin, min(begin + _BLOCK, high))
        begin += _BLOCK
    width = _BLOCK
    there = False  # whether the last pass wrote into `other`
    while width < high - low:
        begin = low
        while begin < high:
            middle = min(begin + width, high)
            end = min(middle + width, high)
            if there:
                _merge(other, rows, begin, middle, end)
            else:
                _merge(rows, other, begin, middle, end)
            begin = end
        there = not there
        width *= 2
    if there:
        for row in range(low, high):
            _move(other, row, rows, row)


def _insert(rows: Integers, low: int, high: int) -> None:
    """Sort a few rows by insertion."""
    for row in range(low + 1, high):
        to = row
        while to > low and _is_before(rows, to, to - 1):
            _swap(rows, to, to - 1)
            to -= 1


def _reverse(rows: Integers, low: int, high: int) -> None:
    high -= 1
    while low < high:
        _swap(rows, low, high)
        low += 1
        high -= 1


def _swap(rows: Integers, one: int, other: int) -> None:
    one *= _WIDTH
    other *= _WIDTH
    for column in range(_WIDTH):
        value = rows[one + column]
        rows[one + column] = rows[other + column]
        rows[other + column] = value


def _merge(source: Integers, target: Integers, low: int, middle: int, high: int) -> None:
    """Merge two sorted runs, [low, middle) and [middle, high), into [low, high) of `target`."""
    left = low
    right = middle
    if middle < high and not _is_before(source, middle, middle - 1):
        right = high  # already in order: only copy
        middle = high
    for to in range(low, high):
        if right >= high or (left < middle and not _is_before(source, right, left)):
            _move(source, left, target, to)
            left += 1
        else:
            _move(source, right, target, to)
            right += 1
