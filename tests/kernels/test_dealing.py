"""Dealing rows out to shards beside sorting them, and pairs of hashes."""

from __future__ import annotations

import random
from array import array
from itertools import pairwise
from typing import Any

import pytest

from abeyant.kernels.dealing import deal, pair_hashes


def dealt(columns: list[list[int]], shards: int) -> tuple[list[tuple[int, ...]], list[int]]:
    rows, ends = array("q", [0] * 4 * len(columns[0])), array("q", [-1] * shards)
    deal(*(array("q", column) for column in columns), ends, rows)  # type: ignore[call-arg]  # mypy counts no star
    return list(zip(*(rows[n::4] for n in range(4)), strict=True)), list(ends)


@pytest.mark.parametrize("shards", [2, 8, 1024])
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_rows_come_shard_after_shard_each_in_its_order(shards: int, count: int) -> None:
    dice = random.Random(count)
    columns = [[dice.randrange(-(2**63), 2**63) for _ in range(count)] for _ in range(4)]
    rows, ends = dealt(columns, shards)
    of = [(place % 2**64) * shards // 2**64 for place in columns[0]]
    assert rows == [row for _, row in sorted(zip(of, zip(*columns, strict=True), strict=True), key=lambda r: r[0])]
    assert [end - begin for begin, end in pairwise((0, *ends))] == [of.count(shard) for shard in range(shards)]


def test_columns_that_do_not_fit_are_refused() -> None:
    one, two, four = array("q", [1]), array("q", [1, 2]), array("q", [0] * 4)
    with pytest.raises(ValueError, match="identities has 2 elements, expected 1, as many as places"):
        deal(one, two, one, one, two, four)
    with pytest.raises(ValueError, match="rows has 1 elements, expected 4, as many as places times 4"):
        deal(one, one, one, one, two, one)
    for shards in (1, 3):
        with pytest.raises(ValueError, match=f"ends has {shards} elements, which is not a power of two above 1"):
            deal(one, one, one, one, array("q", [0] * shards), four)
    with pytest.raises(ValueError, match="rows is read-only"):
        deal(one, one, one, one, two, bytes(32))
    with pytest.raises(TypeError, match="thirds must hold signed 64-bit integers"):
        deal(one, one, array("d", [1]), one, two, four)


def paired(ones: list[int], one_of: list[int], others: list[int], other_of: list[int], count: int) -> list[Any]:
    places, identities = array("q", [0]) * count, array("q", [0]) * count
    pair_hashes(array("q", ones), array("i", one_of), array("q", others), array("i", other_of), places, identities)
    return list(zip(places, identities, strict=True))


def test_a_row_has_the_hashes_of_its_pair() -> None:
    ones, others = [11, 12, 21, 22], [-(2**63), 14, 23, 2**63 - 1]
    every = {(one, other): paired(ones, [one], others, [other], 1)[0] for one in range(2) for other in range(2)}
    assert len({place for place, _ in every.values()} | {identity for _, identity in every.values()}) == 8
    assert paired(ones, [1, 0, 1], others, [0, 0, 1], 3) == [every[1, 0], every[0, 0], every[1, 1]]
    assert paired(ones, [], others, [1, 1], 2) == [every[0, 1], every[1, 1]]
    assert paired(ones, [1, 1], others, [], 2) == [every[1, 0], every[1, 1]]
    assert paired(ones, [], ones, [], 2) != paired(ones, [], others, [], 2)
    assert paired([], [], [], [], 0) == []


def test_a_pair_the_other_way_round_has_other_hashes() -> None:
    assert paired([1, 2], [], [3, 4], [], 1) != paired([3, 4], [], [1, 2], [], 1)


def test_numbers_that_are_not_there_are_refused() -> None:
    for one_of in ([1], [-1]):
        with pytest.raises(ValueError, match="one_of has an index out of range for the 1 texts in ones"):
            paired([1, 2], one_of, [3, 4], [], 1)
    with pytest.raises(ValueError, match="other_of has an index out of range for the 1 texts in others"):
        paired([1, 2], [0, 0], [3, 4], [], 2)
    with pytest.raises(ValueError, match="one_of has 2 elements, expected 1, as many as places"):
        paired([1, 2], [0, 0], [3, 4], [], 1)
    places = array("q", [0])
    with pytest.raises(TypeError, match="one_of must hold 32-bit integers, not 8-byte 'q'"):
        pair_hashes(places, places, places, array("i"), places, places)
