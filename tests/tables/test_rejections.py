"""Tables of which all or nearly all rows are rejected: a warning, once, and an error for a constant."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from abeyant import tables

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
GOOD = {"key": "x", "start": NOON, "timeout": "15 min", "condition": "all"}
EVENTS = pa.table({"key": ["x"], "at": [NOON + timedelta(seconds=7)]})
NEGATIVE = timedelta(seconds=-5)


def operations(*wrong: dict[str, Any], good: int = 0) -> pa.Table:
    rows = [{**GOOD, **row} for row in [*wrong, *[{}] * good]]
    return pa.Table.from_pylist([{"op_id": f"o{number}", **row} for number, row in enumerate(rows)])


def warned(operations: Any, events: Any = EVENTS, **options: Any) -> list[str]:
    """Return the texts of the warnings, and hold them to name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tables.resolve(operations, events, **options)
    assert all(one.category is tables.RejectedRowsWarning and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("timeout", "-1 day", "timeout is not a duration such as '15 min': -1 day; write durations as '15 min'"),
        ("start", None, "no start, as for op_id o0; check the column's name"),
        ("op_id", "o", "duplicate op_id: o; give each operation an op_id of its own"),
        ("op_id", None, "no op_id; check the column's name"),
        ("condition", "every", "condition is none of 'all', 'any' and 'then': every."),
    ],
)
@pytest.mark.parametrize("unique_ids", [False, True])
def test_all_rows_rejected_is_a_warning_with_reason_value_and_mend(
    column: str, value: object, said: str, unique_ids: bool
) -> None:
    other = {"timeout": "soon"}.get(column, value)  # else it is one text in all of them: an error
    wrong = operations({column: value}, {column: other}, {column: value})
    if column == "op_id" and value:
        if unique_ids:
            return  # promised, and not checked
        wrong = operations(*[{column: value}] * 20)
    (warning,) = warned(wrong, unique_ids=unique_ids)
    many = "19 of 20 rows were" if column == "op_id" and value else "all 3 rows were"
    assert warning.startswith(f"operations: {many} rejected: {said}")
    assert warning.endswith("rejected_operations(operations) lists the rows")


def test_a_number_or_time_that_cannot_be_is_shown() -> None:
    ms = operations({}, {}).drop_columns("timeout")
    start = ms["start"]
    cases = {
        "timeout_ms is negative: -5; check which": ms.append_column("timeout_ms", pa.array([-5, -5])),
        "timeout is negative: -5 s; check which": ms.append_column("timeout", pa.array([NEGATIVE] * 2)),
        f"the deadline is beyond the last timestamp: {2**62}; check the unit": ms.append_column(
            "timeout_ms", pa.array([2**62] * 2)
        ),
        "deadline is before start: 2026-03-02 11:59:55": ms.append_column(
            "deadline", pa.array([one.as_py() + NEGATIVE for one in start])
        ),
        "timeout_ms is not a whole number: 1.5; round": ms.append_column("timeout_ms", pa.array([1.5, 2.5])),
    }
    for said, table in cases.items():
        (warning,) = warned(table)
        assert warning.startswith(f"operations: all 2 rows were rejected: {said}")


def test_events_of_which_none_counts_are_a_warning() -> None:
    wrong = pd.DataFrame({"key": ["x", "y"], "at": pd.Series([None, None], dtype="datetime64[us, UTC]")})
    (warning,) = warned(operations({}), wrong)
    assert warning.startswith("events: all 2 rows were rejected: no at, as for key x; check")
    assert warning.endswith("rejected_events(events) lists the rows")
    (warning,) = warned(operations({}), wrong[:1])
    assert warning.startswith("events: its only row was rejected: no at")
    (warning,) = warned(operations({}), wrong, count="after_start")  # resolved from timelines
    assert warning.startswith("events: all 2 rows")


@pytest.mark.parametrize(
    ("wrong", "good", "expected"),
    [
        ([{"condition": "every"}] * 19, 1, ["operations: 19 of 20 rows were rejected: condition"]),
        ([{"condition": "every"}] * 18, 1, []),  # fewer than 20
        ([{"condition": "every"}] * 18, 2, []),  # less than 95 %
        ([{"op_id": None}] * 99, 1, []),  # left out by a null
        ([{"start": None}] * 80 + [{"condition": "every"}] * 19, 1, ["operations: 99 of 100 rows were"]),
        ([{"start": None}] * 80 + [{"condition": "every"}] * 18, 2, []),
        ([], 0, []),
    ],
)
def test_nearly_all_is_95_percent_of_20_that_lack_nothing(
    wrong: list[dict[str, Any]], good: int, expected: list[str]
) -> None:
    table = operations(*wrong, good=good) if wrong else operations({}).slice(1)
    found = warned(table)
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


def test_chunks_are_judged_together() -> None:
    both = operations({"condition": "every"}, good=1)
    rows = pa.array([0] * 300_000 + [1] * 10 + [0] * 300_000 + [1] * 300_000)
    table = both.take(rows).set_column(0, "op_id", pa.array(range(len(rows))))  # in chunks of 262,144 rows
    (warning,) = warned(table.slice(0, 300_010))
    assert warning.startswith("operations: 300,000 of 300,010 rows were rejected: condition is none")
    assert warned(table.slice(300_010)) == []


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("column", ["timeout", "extend"])
def test_a_constant_that_is_no_duration_is_an_error(library: str, column: str) -> None:
    wrong = operations({column: "2 fortnights", "extend_key": "y"}, {column: "2 fortnights", "extend_key": "y"})
    given = {"pandas": wrong.to_pandas, "polars": lambda: pl.from_arrow(wrong), "arrow": lambda: wrong}[library]()
    said = f"^operations: {column} is not a duration such as '15 min': 2 fortnights, in every row; write durations as"
    with pytest.raises(tables.SchemaError, match=said):
        tables.resolve(given, EVENTS)
    assert tables.rejected_operations(given).num_rows == 2
    (warning,) = warned(wrong.slice(1))  # a row alone is data
    assert warning.startswith(f"operations: its only row was rejected: {column} is not a duration")


def test_business_hours_in_a_duration_are_told_of_the_calendar() -> None:
    said = (
        "2 business hours, in every row; write '2 h' or '2 days', and give the hours that count as a calendar: "
        "calendar=Calendar"
    )
    with pytest.raises(tables.SchemaError, match=said):
        tables.resolve(operations({"timeout": "2 business hours"}, {"timeout": "2 business hours"}), EVENTS)


def test_batches_warn_at_their_end() -> None:
    batches = tables.resolve_batches(operations({"start": None}, {"start": None}), EVENTS)
    with pytest.warns(tables.RejectedRowsWarning, match="^operations: all 2 rows were rejected: no start"):
        assert batches.read_all().num_rows == 0
    with pytest.warns(tables.RejectedRowsWarning, match="^events: its only row was rejected: no key"):
        tables.resolve_batches(operations({}), pa.table({"key": pa.nulls(1), "at": [NOON]}))


@pytest.mark.parametrize("rules", [{}, {"combine": "sum"}])
def test_fractions_among_whole_prices_are_a_warning(rules: dict[str, Any]) -> None:
    prices = [10.0] * 18 + [9.5, 19.99]
    paid = pd.DataFrame({"key": ["x"] * 20, "at": [NOON] * 20, "progress": prices})
    (warning,) = warned(operations({}), paid, **rules)
    assert warning.startswith(
        "events: 2 of 20 rows were rejected: progress is not a whole number: 9.5; round the column, or"
    )
    assert "cents" in warning
    assert not warned(operations({}), paid.assign(progress=[10.0] * 19 + [float("nan")]), **rules)  # left out by a null
    assert not warned(operations({}), paid.tail(19), **rules)
