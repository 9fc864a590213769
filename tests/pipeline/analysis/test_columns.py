"""Columns as numbers: encoded, counted and merged, beside dictionaries of Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.analysis.columns import codes, count_equal, decoded, encode, join_tables, merge_rows, sorted_order

TEXTS = st.none() | st.sampled_from(["", "a", "b", "FETCH", "ä"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([-(1 << 62), 1 << 62])  # with these, a row takes more than 63 bits
ROWS = st.lists(st.tuples(TEXTS, TEXTS, NUMBERS), max_size=40)


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [[row[at] for row in rows] for at in range(2)]
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip("xy", columns, strict=True)})


@given(ROWS, st.booleans())
def test_equal_rows_are_counted_as_by_a_counter(rows: list[tuple[Any, ...]], is_encoded: bool) -> None:
    table, numbers = _table(rows), np.array([row[2] for row in rows], np.int64)
    if is_encoded:
        table = pa.table({name: table[name].combine_chunks().dictionary_encode() for name in table.column_names})
    texts, (number,), counts = count_equal(table, ["x", "y"], [numbers])
    keys = zip(texts["x"].to_pylist(), texts["y"].to_pylist(), number.tolist(), strict=True)
    assert list(zip(keys, counts.tolist(), strict=True)) == sorted(
        Counter(rows).items(), key=lambda item: _place(table, item[0])
    )


def _place(table: pa.Table, row: tuple[Any, ...]) -> tuple[int, int, int]:
    """Return where a row is among the counted rows: by the numbers of its texts."""
    places = [codes(table[name])[1].to_pylist().index(text) for name, text in zip("xy", row[:2], strict=True)]
    return places[0], places[1], row[2]


@given(st.lists(TEXTS), st.lists(TEXTS))
def test_a_column_is_encoded_and_decoded_with_its_nulls(first: list[str | None], second: list[str | None]) -> None:
    parts = []
    for part in (first, second):
        column = pa.array(part, pa.string())
        numbers, values = codes(column)
        assert [values[number].as_py() for number in numbers.tolist()] == part
        encoded = encode(numbers, values)
        assert encoded.null_count == part.count(None)
        assert encoded.dictionary.null_count == 0
        assert [codes(encoded)[1][number].as_py() for number in codes(encoded)[0].tolist()] == part
        parts.append(pa.table({"text": encoded}))
    joined = join_tables(parts)
    assert joined["text"].num_chunks <= 1
    assert decoded(joined).equals(pa.table({"text": pa.array(first + second, pa.string())}))
    assert sum(joined.group_by("text").aggregate([([], "count_all")])["count_all"].to_pylist()) == len(first + second)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(-9, 9))))
def test_equal_rows_are_merged_each_value_by_its_own_function(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[at] for row in rows], np.int64) for at in range(3)]
    distinct, merged = merge_rows(columns[:2], [(columns[2], reduce) for reduce in (np.add, np.minimum, np.maximum)])
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for x, y, value in rows:
        groups[x, y].append(value)
    expected = [(*key, sum(values), min(values), max(values)) for key, values in sorted(groups.items())]
    assert list(zip(*(column.tolist() for column in [*distinct, *merged]), strict=True)) == expected
    order = sorted_order(columns[:2])
    assert [rows[at][:2] for at in order.tolist()] == sorted(row[:2] for row in rows)


def test_dictionaries_with_other_values_are_joined_to_one() -> None:
    parts = [pa.table({"kind": pa.array(kinds).dictionary_encode()}) for kinds in (["a", "b"], ["b", "c"])]
    with pytest.raises(pa.ArrowNotImplementedError):  # what `join_tables` is for
        pa.concat_tables(parts).group_by("kind").aggregate([([], "count_all")])
    counts = join_tables(parts).group_by("kind").aggregate([([], "count_all")])
    assert dict(zip(counts["kind"].to_pylist(), counts["count_all"].to_pylist(), strict=True)) == {
        "a": 1,
        "b": 2,
        "c": 1,
    }
