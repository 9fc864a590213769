"""Pack rows of integers into as few bytes as they need, for transfer.

Each value is written as its difference from the column's least value, in as many bytes as the greatest difference needs
(*frame of reference*; Goldstein, Ramakrishnan and Shaft, 1998). So a time within a day takes five bytes, and not eight.

Rows are written block by block. Each block begins with a head that has all that is needed to read the block: its number
of rows, and for each column its width in bytes and its least value. Blocks may be joined in any order. A writer may
give a column fewer bytes than it needs: then the uppermost bits of its values are lost.

O(bytes). When compiled, both functions release the global interpreter lock.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.kernels.buffers import integers, zeros

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from abeyant.kernels.rows import Integers

_WORD = 8  # bytes; C constants when compiled
_TOP = 1 << 63
_ALL = 0xFFFFFFFFFFFFFFFF


def head_size(columns: int) -> int:
    """Return the size of a block's head in bytes: its number of rows, and each column's width and least value."""
    return _WORD * (1 + 2 * columns)


def narrow(
    rows: ReadableBuffer, ends: ReadableBuffer, widths: ReadableBuffer, least: ReadableBuffer, packed: WriteableBuffer
) -> None:
    """Write rows into `packed`, block after block; block n ends before row `ends[n]`.

    `widths` has for each column the number of bytes of a value, from 0 to 8 and not all 0; `least` has the number to
    subtract from each value. A block without rows is left out. `packed` must have `head_size` bytes for each block with
    rows, and the sum of the widths for each row. Raises ValueError for buffers that do not fit one another,
    TypeError for other kinds of buffer.
    """
    values, stops = integers(rows, "rows"), integers(ends, "ends")
    width, low = integers(widths, "widths"), integers(least, "least")
    out = memoryview(packed).cast("B")
    if not len(width) or len(width) != len(low):
        raise ValueError(f"widths and least must have the same length, 1 or more, not {len(width)} and {len(low)}")
    if any(not 0 <= each <= _WORD for each in width) or not any(width):
        raise ValueError(f"widths must be from 0 to {_WORD} bytes, at least one of them not 0, not {width.tolist()}")
    count, left = divmod(len(values), len(width))
    if left:
        raise ValueError(f"rows has {len(values)} integers, not a multiple of {len(width)}, the width of a row")
    if not _rises(stops, count):
        raise ValueError(f"ends must not decrease, and the last must be {count}, the number of rows")
    blocks = sum(1 for block in range(len(stops)) if stops[block] > (stops[block - 1] if block else 0))
    size = blocks * head_size(len(width)) + count * sum(width)
    if len(out) != size:
        raise ValueError(f"packed has {len(out)} bytes, expected {size}")
    if out.readonly:
        raise ValueError("packed is read-only")
    if count:
        _narrow(values, stops, width, low, out)


def widen(packed: ReadableBuffer, columns: int, first_least: int = 0) -> array[int]:
    """Return the rows of consecutive blocks, each row of `columns` integers.

    `first_least` is added to each value of the first column. Raises ValueError unless `packed` has whole blocks only.
    """
    if columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    blocks = memoryview(packed).cast("B")
    if not len(blocks):
        return zeros("q", 0)
    count = _count(blocks, columns)
    if count < 0:
        raise ValueError(f"packed has {len(blocks)} bytes, which are not whole blocks of {columns} columns")
    rows = zeros("q", count * columns)
    if count:
        widths, masks, least = zeros("q", columns), zeros("Q", columns), zeros("q", columns)
        _widen(blocks, columns, first_least, widths, masks, least, rows)
    return rows


def _rises(ends: Integers, count: int) -> bool:
    """Return whether `ends` never decrease, and the last is `count`."""
    last = 0
    for end in ends:
        if end < last:
            return False
        last = end
    return last == count


# -- in C when compiled, without the interpreter's lock --------------------------------------------------------------


# Both inner loops are written out: a call would copy the descriptions of the buffers for each number.


def _narrow(rows: Integers, ends: Integers, widths: Integers, least: Integers, packed: memoryview) -> None:
    with cython.nogil:
        columns = len(widths)
        last = len(packed) - _WORD  # where a word may begin
        place = row = 0
        for block in range(len(ends)):
            end = ends[block]
            if end == row:
                continue
            _write(packed, place, end - row)
            place += _WORD
            for column in range(columns):
                _write(packed, place, widths[column])
                _write(packed, place + _WORD, least[column])
                place += 2 * _WORD
            while row < end:
                for column in range(columns):
                    value = (rows[row * columns + column] - least[column]) & _ALL
                    if place <= last:  # compiled to one store; the next values overwrite its excess bytes
                        for number in range(8):
                            packed[place + number] = (value >> (8 * number)) & 0xFF
                    else:
                        for number in range(widths[column]):
                            packed[place + number] = (value >> (8 * number)) & 0xFF
                    place += widths[column]
                row += 1


def _count(blocks: memoryview, columns: int) -> int:
    """Return the number of rows of all blocks; -1 if a block is invalid or cut off."""
    count = place = 0
    with cython.nogil:
        while place < len(blocks):
            if len(blocks) - place < _WORD * (1 + 2 * columns):
                return -1
            rows = _read(blocks, place)
            place += _WORD
            width = 0
            for _ in range(columns):
                one = _read(blocks, place)
                if one < 0 or one > _WORD:
                    return -1
                width += one
                place += 2 * _WORD
            if rows < 0 or (width > 0 and rows > (len(blocks) - place) // width) or width == 0:
                return -1
            place += rows * width
            count += rows
    return count


def _widen(
    blocks: memoryview,
    columns: int,
    first_least: int,
    widths: Integers,
    masks: Integers,
    least: Integers,
    rows: Integers,
) -> None:
    with cython.nogil:
        last = len(blocks) - _WORD  # where a word may begin
        place = to = 0
        while place < len(blocks):
            end = to + columns * _read(blocks, place)
            place += _WORD
            for column in range(columns):
                widths[column] = _read(blocks, place)
                masks[column] = _ALL >> (64 - 8 * widths[column]) if widths[column] else 0
                least[column] = _read(blocks, place + _WORD)
                place += 2 * _WORD
            least[0] = _signed(least[0] + first_least)
            while to < end:
                for column in range(columns):
                    value = 0
                    if place <= last:  # compiled to one load
                        for number in range(8):
                            byte = blocks[place + number]
                            value |= byte << (8 * number)
                        value &= masks[column]
                    else:
                        for number in range(widths[column]):
                            byte = blocks[place + number]
                            value |= byte << (8 * number)
                    value = (value + least[column]) & _ALL
                    rows[to] = (value ^ _TOP) - _TOP
                    place += widths[column]
                    to += 1


def _write(packed: memoryview, place: int, value: int) -> None:
    """Write an integer as eight little-endian bytes."""
    for number in range(8):
        packed[place + number] = (value >> (8 * number)) & 0xFF


def _read(packed: memoryview, place: int) -> int:
    """Return eight little-endian bytes as a signed integer."""
    value = 0
    for number in range(8):
        byte = packed[place + number]
        value |= byte << (8 * number)
    return _signed(value)


def _signed(value: int) -> int:
    """Return the value wrapped to a signed 64-bit integer."""
    return ((value & _ALL) ^ _TOP) - _TOP
