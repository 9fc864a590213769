"""Rows written in few bytes come back as they were, whatever the columns, blocks and order of blocks."""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.kernels.narrow import head_size, narrow, widen

LEAST, MOST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.integers(LEAST, MOST) | st.integers(-300, 300) | st.sampled_from([LEAST, LEAST + 1, -1, 0, MOST - 1, MOST])


def widths_of(rows: list[list[int]]) -> tuple[list[int], list[int]]:
    columns = list(zip(*rows, strict=True))
    least = [min(column) for column in columns]
    widths = [(max(column) - low).bit_length() + 7 >> 3 for column, low in zip(columns, least, strict=True)]
    return (widths if any(widths) else [1, *widths[1:]]), least


def packed(rows: list[list[int]], ends: list[int], widths: list[int], least: list[int]) -> bytearray:
    blocks = sum(end > begin for begin, end in pairwise((0, *ends)))
    out = bytearray(blocks * head_size(len(widths)) + len(rows) * sum(widths))
    narrow(
        array("q", [value for row in rows for value in row]),
        array("q", ends),
        array("q", widths),
        array("q", least),
        out,
    )
    return out


def widened(blocks: bytes | bytearray, columns: int, first_least: int = 0) -> list[list[int]]:
    values = widen(blocks, columns, first_least).tolist()
    return [values[row : row + columns] for row in range(0, len(values), columns)]


@given(st.data())
def test_rows_come_back_in_the_order_of_their_blocks(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 5))
    rows = data.draw(st.lists(st.lists(NUMBERS, min_size=columns, max_size=columns), min_size=1, max_size=30))
    ends = [*sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=8))), len(rows)]
    widths, least = widths_of(rows)
    blocks = packed(rows, ends, widths, least)
    assert widened(blocks, columns) == rows
    others = packed(rows[:1], [1], *widths_of(rows[:1]))
    assert widened(others + blocks, columns) == rows[:1] + rows


def test_each_row_takes_the_bytes_that_its_columns_need() -> None:
    rows = [[1_700_000_000_000_000 + n, -5, n % 2] for n in range(1000)]
    widths, least = widths_of(rows)
    assert (widths, least) == ([2, 0, 1], [1_700_000_000_000_000, -5, 0])
    blocks = packed(rows, [400, 400, 1000], widths, least)
    assert len(blocks) == 2 * 56 + 1000 * 3
    assert widened(blocks, 3) == rows


def test_a_column_with_fewer_bytes_than_it_needs_loses_the_uppermost_and_another_may_tell_them() -> None:
    rows = [[0x1234_5678, 7], [0x1234_0001, 8]]
    blocks = packed(rows, [2], [2, 1], [0, 0])
    assert widened(blocks, 2) == [[0x5678, 7], [1, 8]]
    assert widened(blocks, 2, 0x1234_0000) == rows
    high = [[LEAST + 5, 0]]
    assert widened(packed(high, [1], [7, 0], [0, 0]), 2, LEAST) == high


def test_nothing_is_no_block() -> None:
    assert packed([], [0, 0], [3], [0]) == b""
    assert widened(b"", 3) == []


def test_buffers_that_do_not_fit_are_refused() -> None:
    one, two = array("q", [1]), array("q", [1, 2])
    room = bytearray(head_size(1) + 8)
    with pytest.raises(ValueError, match="widths and least must have the same length, 1 or more, not 1 and 2"):
        narrow(one, one, one, two, room)
    for width in (9, -1, 0):
        with pytest.raises(ValueError, match=rf"widths must be from 0 to 8 bytes, .* not \[{width}\]"):
            narrow(one, one, array("q", [width]), one, room)
    with pytest.raises(ValueError, match="rows has 1 integers, not a multiple of 2, the width of a row"):
        narrow(one, one, two, two, room)
    for ends in ([2, 1], [0], [-1, 1], [2]):
        with pytest.raises(ValueError, match="ends must not decrease, and the last must be 1, the number of rows"):
            narrow(one, array("q", ends), array("q", [8]), one, room)
    with pytest.raises(ValueError, match="packed has 32 bytes, expected 25"):
        narrow(one, one, one, one, room)
    with pytest.raises(ValueError, match="packed is read-only"):
        narrow(one, one, array("q", [8]), one, bytes(room))
    with pytest.raises(TypeError, match="rows must hold signed 64-bit integers"):
        narrow(array("d", [1]), one, one, one, room)
    with pytest.raises(ValueError, match="columns must be at least 1, not 0"):
        widen(room, 0)


@given(st.data())
def test_what_are_no_whole_blocks_is_refused_and_never_read_beyond(data: st.DataObject) -> None:
    rows = [[1, 2], [300, 5]]
    blocks = bytes(packed(rows, [1, 2], *widths_of(rows)))
    cut = data.draw(st.integers(1, len(blocks) - 1))
    place = data.draw(st.integers(0, len(blocks) - 1))
    spoilt = blocks[:place] + bytes([data.draw(st.integers(0, 255))]) + blocks[place + 1 :]
    for broken in (blocks[:cut], spoilt):
        with suppress(ValueError):  # some are whole, and say other things
            assert len(widened(broken, 2)) <= len(broken)


@pytest.mark.parametrize(("rows", "width"), [(1 << 62, 1), (MOST, 8), (-1, 1), (MOST, 0), (1, 9), (1, -1)])
def test_a_head_that_cannot_be_is_refused(rows: int, width: int) -> None:
    with pytest.raises(ValueError, match="not whole blocks"):
        widen(array("q", [rows, width, 0]), 1)
