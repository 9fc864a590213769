"""A stable radix sort (Knuth, TAOCP 3, 5.2.5) of times, each with its row number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.kernels.buffers import zeros

if TYPE_CHECKING:
    from array import array

    from abeyant.kernels.rows import Integers

_FOREVER = (1 << 63) - 1  # C constants when compiled
_DIGIT = 11  # bits that a pass takes: a table of 2,048 counts stays in the first cache
_DIGITS = 1 << _DIGIT
_DIGIT_MASK = _DIGITS - 1


def sort_by_key(keys: Integers, rows: Integers) -> None:
    """Sort 64-bit `keys` (from 0 to 2**62), and 32-bit `rows` with them, in place; stable.

    If `rows` is empty, only the keys are sorted. O(n) for each 11 bits of the keys' range.
    """
    if rows and len(rows) != len(keys):
        raise ValueError(f"rows has {len(rows)} elements, expected {len(keys)}, as many as keys")
    if not _is_sorted(keys):
        _sort(memoryview(keys), memoryview(rows), zeros("q", len(keys)), zeros("i", len(rows)))


def _is_sorted(keys: Integers) -> bool:
    before = 0
    for position in range(len(keys)):
        if keys[position] < before:
            return False
        before = keys[position]
    return True


def _sort(keys: memoryview, rows: memoryview, other_keys: array[int], other_rows: array[int]) -> None:
    low = _FOREVER
    high = 0
    for position in range(len(keys)):
        key = keys[position]
        low = min(low, key)
        high = max(high, key)
    place = zeros("q", _DIGITS)
    shift = 0
    there = False  # whether the last pass wrote into the other pair
    while shift < 63 and (high - low) >> shift > 0:
        if there:
            _scatter(other_keys, other_rows, keys, rows, place, low, shift)
        else:
            _scatter(keys, rows, other_keys, other_rows, place, low, shift)
        there = not there
        shift += _DIGIT
    if there:
        keys[:] = other_keys
        rows[:] = other_rows


def _scatter(
    keys: Integers,
    rows: Integers,
    to_keys: Integers,
    to_rows: Integers,
    place: Integers,
    low: int,
    shift: int,
) -> None:
    """Sort stably by one digit of `key - low`, from bit `shift` on, into `to_keys` and `to_rows`: one pass."""
    for digit in range(_DIGITS):
        place[digit] = 0
    for position in range(len(keys)):
        place[((keys[position] - low) >> shift) & _DIGIT_MASK] += 1
    total = 0
    for digit in range(_DIGITS):
        count = place[digit]
        place[digit] = total
        total += count
    paired = len(rows) > 0
    for position in range(len(keys)):
        key = keys[position]
        digit = ((key - low) >> shift) & _DIGIT_MASK
        to = place[digit]
        place[digit] = to + 1
        to_keys[to] = key
        if paired:
            to_rows[to] = rows[position]
