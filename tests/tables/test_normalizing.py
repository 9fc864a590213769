"""Tables with fewer columns, numbers that are no integers, and streams that were read before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from abeyant import tables
from abeyant.errors import AbeyantError, SchemaError

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
OPERATIONS = pa.table(
    {"op_id": ["a", "b", "c"], "key": ["x", "y", "x"], "start": [NOON] * 3, "timeout_ms": [60_000, 60_000, 1_000]}
)
EVENTS = pa.table({"key": ["x"], "at": [NOON + timedelta(seconds=7)]})
OUTCOMES = [("", "a", None, "completed"), ("", "b", None, "expired"), ("", "c", None, "expired")]

FORMS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "table": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(max_chunksize=1),
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "dataset": lambda table, _: ds.dataset(table),
    "glob": lambda table, path: globbed(table, path),
}


def globbed(table: pa.Table, path: Path) -> str:
    path.mkdir()
    for number in range(2):
        pq.write_table(table.slice(number, None if number else 1), path / f"part-{number}.parquet")
    (path / "notes.txt").write_text("no table")
    return str(path / "part-*.parquet")


def found(outcomes: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("instance", "op_id", "kind", "outcome")) for row in outcomes.to_pylist()]


@pytest.mark.parametrize("form", FORMS)
def test_four_columns_and_two_are_enough(form: str, tmp_path: Path) -> None:
    operations, events = FORMS[form](OPERATIONS, tmp_path / "o"), FORMS[form](EVENTS, tmp_path / "e")
    assert found(tables.resolve(operations, events)) == OUTCOMES


@pytest.mark.parametrize("ids", [pa.int64(), pa.decimal128(38, 0)], ids=["integers", "decimals"])
@pytest.mark.parametrize("form", FORMS)
def test_ids_and_keys_may_be_whole_numbers(form: str, ids: pa.DataType, tmp_path: Path) -> None:
    """Decimals are those of DuckDB's sum() and of databases."""
    operations = pa.table(
        {"op_id": pa.array([1, 2, 3]).cast(ids), "instance": [0] * 3, "kind": [7] * 3}
        | {"key": pa.array([4, 5, 4], pa.uint8()).cast(pa.uint8() if pa.types.is_integer(ids) else ids)}
    )
    operations = operations.append_column("start", OPERATIONS["start"]).append_column(
        "timeout_ms", OPERATIONS["timeout_ms"]
    )
    operations = operations.append_column("condition", pa.array(["all"] * 3)).append_column(
        "required", pa.array([1] * 3)
    )
    events = pa.table({"instance": [0], "key": [4], "at": EVENTS["at"], "progress": [1]})
    read = tables.resolve(FORMS[form](operations, tmp_path / "o"), FORMS[form](events, tmp_path / "e"))
    assert found(read) == [("0", "1", "7", "completed"), ("0", "2", "7", "expired"), ("0", "3", "7", "expired")]


def test_what_is_there_counts_before_a_default() -> None:
    both = OPERATIONS.append_column("required", pa.array([2, 1, 1]))
    both = both.append_column("instance", pa.array(["i"] * 3)).append_column("kind", pa.array(["k"] * 3))
    events = EVENTS.append_column("instance", pa.array(["i"])).append_column("progress", pa.array([1]))
    assert found(tables.resolve(both, events)) == [("i", op, "k", "expired") for op in "abc"]
    watches = pa.array([[{"key": "x", "required": 1}, {"key": "nothing", "required": 1}]] * 3)
    any_of = OPERATIONS.append_column("watches", watches)  # `key` is a further column then
    assert [row[3] for row in found(tables.resolve(any_of, EVENTS))] == ["expired"] * 3
    any_of = any_of.append_column("condition", pa.array(["any"] * 3))
    assert [row[3] for row in found(tables.resolve(any_of, EVENTS))] == ["completed", "completed", "expired"]


def test_duplicates_and_nulls_are_found_among_defaults_and_the_rows_are_as_they_came() -> None:
    operations = pa.concat_tables([OPERATIONS, OPERATIONS.slice(0, 1)])
    operations = operations.append_column("instance", pa.array(["", "", None, ""]))
    aside = tables.rejected_operations(operations)
    assert aside.column_names == [*operations.column_names, "reason"]
    assert sorted((row["op_id"], row["reason"]) for row in aside.to_pylist()) == [
        ("a", "duplicate op_id"),
        ("c", "no instance"),
    ]
    events = EVENTS.append_column("instance", pa.array([""] * EVENTS.num_rows))
    assert tables.resolve(operations, events).num_rows == 2
    plain = tables.rejected_operations(pa.concat_tables([OPERATIONS, OPERATIONS.slice(1, 1)]))
    assert plain.to_pylist() == [{**OPERATIONS.slice(1, 1).to_pylist()[0], "reason": "duplicate op_id"}]
    keyless = OPERATIONS.set_column(1, "key", pa.array(["x", None, "x"]))
    assert tables.rejected_operations(keyless)["reason"].to_pylist() == ["a watch has no key"]


@pytest.mark.parametrize(
    "numbers",
    [
        pa.array([Decimal(60_000), Decimal("900000.5"), Decimal(1000)], pa.decimal128(38, 1)),
        pa.array([60_000.0, 900000.5, 1000.0]),
        pa.array([Decimal(60_000), Decimal("900000.5"), Decimal(1000)], pa.decimal256(60, 3)),
    ],
    ids=["decimal", "float", "wide decimal"],
)
def test_numbers_are_taken_where_they_are_whole_and_the_others_keep_their_text(numbers: pa.Array) -> None:
    operations = OPERATIONS.set_column(3, "timeout_ms", numbers)
    assert found(tables.resolve(operations, EVENTS)) == [OUTCOMES[0], OUTCOMES[2]]
    (reason,) = tables.rejected_operations(operations)["reason"].to_pylist()
    assert reason.rstrip("0") == "timeout_ms is not a whole number: 900000.5"
    events = pa.table({"key": ["x"] * 3, "at": [NOON] * 3, "progress": numbers})
    (reason,) = tables.rejected_events(events)["reason"].to_pylist()
    assert reason.rstrip("0") == "progress is not a whole number: 900000.5"
    required = OPERATIONS.append_column("required", numbers)
    (row,) = tables.rejected_operations(required).to_pylist()
    assert (row["op_id"], row["reason"].rstrip("0")) == ("b", "required is not a whole number: 900000.5")


def test_a_number_beyond_64_bits_and_one_that_is_none() -> None:
    numbers = pa.array([Decimal(2**63), Decimal(2**63 - 1), None], pa.decimal128(38, 0))
    reasons = tables.rejected_operations(OPERATIONS.set_column(3, "timeout_ms", numbers))["reason"].to_pylist()
    assert reasons == [
        "timeout_ms is not a whole number: 9223372036854775808",
        "the deadline is beyond the last timestamp",
        "no timeout_ms",
    ]
    floats = pl.DataFrame({"key": ["x"] * 2, "at": [NOON] * 2, "progress": [float("nan"), float("inf")]})
    reasons = tables.rejected_events(floats)["reason"].to_pylist()
    assert reasons == ["progress is not a whole number: nan", "progress is not a whole number: inf"]
    gap = pd.DataFrame({"key": ["x"] * 2, "at": [NOON] * 2, "progress": [1, None]})  # pandas makes it a float
    assert tables.rejected_events(gap)["reason"].to_pylist() == ["no progress"]


SUMS_OF_DUCKDB = """
import duckdb
from abeyant import tables
connection = duckdb.connect()
operations = connection.sql(
    "SELECT 'a' AS op_id, 'x' AS key, TIMESTAMPTZ '2026-03-02 12:00:00+00' AS start, sum(n) AS timeout_ms, "
    "sum(n) // 30000 AS required FROM (VALUES (30000::HUGEINT), (30000)) AS t(n)"
)
events = connection.sql(
    "SELECT 'x' AS key, TIMESTAMPTZ '2026-03-02 12:00:07+00' AS at, sum(n) AS progress "
    "FROM (VALUES (1.0), (1.0)) AS t(n)"
)
print(tables.resolve(operations, events).to_pylist()[0]["waited_ms"])
"""


def test_sums_of_duckdb_are_taken() -> None:
    """They are decimals in Arrow. (In a process of its own, for DuckDB does not like how pytest ends.)"""
    run = subprocess.run(
        [sys.executable, "-c", SUMS_OF_DUCKDB], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "7000.0"


# -- streams ---------------------------------------------------------------------------------------------------------


def read_before(table: pa.Table) -> pa.RecordBatchReader:
    reader = table.to_reader()
    reader.read_all()
    return reader


@pytest.mark.parametrize(
    "call",
    [
        lambda reader: tables.resolve(OPERATIONS, reader),
        lambda reader: tables.resolve_batches(OPERATIONS, reader),
        lambda reader: tables.rejected_events(reader),
    ],
    ids=["resolve", "resolve_batches", "rejected_events"],
)
def test_events_that_were_read_before_are_refused(call: Callable[[pa.RecordBatchReader], Any]) -> None:
    with pytest.raises(AbeyantError, match=r"events: the RecordBatchReader is empty or has been read already"):
        call(read_before(EVENTS))


def test_operations_that_were_read_before_are_refused() -> None:
    with pytest.raises(AbeyantError, match="operations: the RecordBatchReader is empty or has been read already"):
        tables.resolve(read_before(OPERATIONS), EVENTS)
    with pytest.raises(AbeyantError, match="operations: the RecordBatchReader is empty or has been read already"):
        tables.resolve_batches(read_before(OPERATIONS), EVENTS).read_all()
    with pytest.raises(AbeyantError, match="operations: the RecordBatchReader is empty or has been read already"):
        tables.rejected_operations(read_before(OPERATIONS))


def test_one_reader_for_both_tables_is_refused() -> None:
    one = OPERATIONS.append_column("at", OPERATIONS["start"]).to_reader()
    with pytest.raises(AbeyantError, match="operations and events are the same RecordBatchReader"):
        tables.resolve(one, one)


def test_a_generator_behind_a_reader_is_read_once() -> None:
    def batches() -> Any:
        yield from EVENTS.to_batches()

    reader = pa.RecordBatchReader.from_batches(EVENTS.schema, batches())
    assert found(tables.resolve(OPERATIONS, reader)) == OUTCOMES
    with pytest.raises(AbeyantError, match="or has been read already"):
        tables.resolve(OPERATIONS, reader)


@pytest.mark.parametrize("form", ["table", "pandas", "polars", "dataset"])
def test_an_empty_table_is_no_stream(form: str, tmp_path: Path) -> None:
    nothing = FORMS[form](EVENTS.slice(0, 0), tmp_path)
    assert {row[3] for row in found(tables.resolve(OPERATIONS, nothing))} == {"expired"}
    an_empty_batch = pa.RecordBatchReader.from_batches(EVENTS.schema, [pa.RecordBatch.from_pylist([], EVENTS.schema)])
    assert {row[3] for row in found(tables.resolve(OPERATIONS, an_empty_batch))} == {"expired"}


# -- refused ---------------------------------------------------------------------------------------------------------


def test_a_path_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(AbeyantError, match=r"^operations: no such file or directory: .*nowhere\.parquet$"):
        tables.resolve(tmp_path / "nowhere.parquet", EVENTS)
    with pytest.raises(AbeyantError, match=r"^events: nothing matches .*\*\.parquet$"):
        tables.resolve(OPERATIONS, f"{tmp_path}/*.parquet")


def test_neither_watches_nor_a_key_is_refused() -> None:
    with pytest.raises(tables.SchemaError, match=r"operations: no column 'key', expected text \(columns: op_id"):
        tables.resolve(OPERATIONS.drop_columns(["key"]), EVENTS)
    with pytest.raises(tables.SchemaError, match="operations: column 'timeout_ms' is string, expected an integer"):
        tables.resolve(OPERATIONS.set_column(3, "timeout_ms", pa.array(["15 min"] * 3)), EVENTS)


@pytest.mark.parametrize("kind", [pa.decimal128(38, 1), pa.float64()])
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
def test_watches_may_require_decimals_and_floats_that_are_whole(
    kind: pa.DataType, lists: Callable[[pa.DataType], pa.DataType]
) -> None:
    watches: list[list[dict[str, Any]] | None] = [
        [{"key": "x", "required": 1}, {"key": "x", "required": 0}],
        [{"key": "x", "required": 2}],
        None,
        [{"key": "x", "required": 1}, {"key": "x", "required": None}],
    ]
    ids = pa.table({"op_id": list("abcd"), "start": [NOON] * 4, "timeout_ms": [60_000] * 4})
    watch = pa.struct([("key", pa.string()), ("required", kind)])
    whole = ids.append_column("watches", pa.array(watches, pa.list_(watch)).cast(lists(watch)))
    for operations in (whole, whole.slice(1)):  # the lists of a slice begin within their values
        ends = [("", "a", None, "completed"), ("", "b", None, "expired")]
        assert found(tables.resolve(operations, EVENTS)) == ends[4 - operations.num_rows :]
        reasons = [row["reason"] for row in tables.rejected_operations(operations).to_pylist()]
        assert reasons == ["no watches", "a watch has no required"]
    half = [[{"key": "x", "required": 1}], [{"key": "x", "required": 0}, {"key": "x", "required": 2.5}]] + [None] * 2
    broken = ids.append_column(
        "watches", pa.array(half, pa.list_(pa.struct([("key", pa.string()), ("required", pa.float64())])))
    )
    assert found(tables.resolve(broken, EVENTS)) == [("", "a", None, "completed")]
    assert tables.rejected_operations(broken).to_pylist()[0]["reason"] == "required is not a whole number: 2.5"


@pytest.mark.parametrize("required", [1, 1.0])
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
def test_watches_may_have_integers_as_keys(
    lists: Callable[[pa.DataType], pa.DataType], required: float, tmp_path: Path
) -> None:
    watches = [[{"key": 7, "required": required}], [{"key": 8, "required": 1}], [{"key": None, "required": 1}], None]
    watch = pa.struct(
        [("key", pa.int32()), ("required", pa.int16() if required == 1 and isinstance(required, int) else pa.float64())]
    )
    ids = pa.table({"op_id": list("abcd"), "start": [NOON] * 4, "timeout_ms": [60_000] * 4})
    operations = ids.append_column("watches", pa.array(watches, pa.list_(watch)).cast(lists(watch)))
    events = pa.table({"key": [7], "at": EVENTS["at"][:1]})
    for form in FORMS.values():
        given = form(operations.slice(0, 2), tmp_path / "operations")  # pandas makes floats of them beside a null
        assert found(tables.resolve(given, events)) == [("", "a", None, "completed"), ("", "b", None, "expired")]
    reasons = [row["reason"] for row in tables.rejected_operations(operations).to_pylist()]
    assert reasons == ["a watch has no key", "no watches"]


@pytest.mark.parametrize("name", ["Required", "INSTANCE", "Kind", "Condition"])
def test_a_column_in_another_case_is_not_passed_over_for_its_default(name: str) -> None:
    operations = OPERATIONS.append_column(name, pa.array([5] * 3 if name == "Required" else ["any"] * 3))
    events = EVENTS.append_column("instance", pa.array(["any"])) if name == "INSTANCE" else EVENTS
    with pytest.raises(SchemaError, match=f"^operations: column '{name}' must be spelled '{name.lower()}': rename it$"):
        tables.resolve(operations, events)
    with pytest.raises(SchemaError, match=r"^events: column 'Progress' must be spelled 'progress': rename it$"):
        tables.resolve(OPERATIONS, EVENTS.append_column("Progress", pa.array([2])))
    both = operations.append_column(name.lower(), operations[name])  # then it is a further column
    tables.resolve(both, events)


def test_columns_in_upper_case_are_named_with_what_to_rename() -> None:
    """Databases and Snowflake have them."""
    upper = OPERATIONS.rename_columns([name.upper() for name in OPERATIONS.column_names])
    said = r"no column 'op_id', .*; rename OP_ID to op_id, KEY to key, START to start, TIMEOUT_MS to timeout_ms \(in "
    with pytest.raises(SchemaError, match=said):
        tables.resolve(upper, EVENTS)
    with pytest.raises(SchemaError, match=r"^events: no column 'at', expected a timestamp \(columns: key\)$"):
        tables.resolve(OPERATIONS, EVENTS.drop_columns("at"))


@pytest.mark.parametrize("form", FORMS)
def test_an_instance_in_one_table_only_is_refused(form: str, tmp_path: Path) -> None:
    """No key would match the other table's default, and everything would expire."""
    named = EVENTS.append_column("instance", pa.array(["b"] * EVENTS.num_rows))
    operations, events = FORMS[form](OPERATIONS, tmp_path / "operations"), FORMS[form](named, tmp_path / "events")
    with pytest.raises(SchemaError, match=r"^events has the column instance and operations has none, so no key would"):
        tables.resolve(operations, events)
    named = OPERATIONS.append_column("instance", pa.array(["b"] * OPERATIONS.num_rows))
    with pytest.raises(SchemaError, match=r"add it to events, or drop it from operations$"):
        tables.resolve_batches(named, EVENTS)


@pytest.mark.parametrize("column", ["cancle_key", "cancelKey", "cancel_keys"])
def test_a_column_misspelt_is_not_passed_over_in_silence(column: str) -> None:
    misspelt = OPERATIONS.append_column(column, pa.array(["x"] * 3))
    with pytest.warns(
        UserWarning,
        match=rf"^operations: the column '{column}' is ignored; did you mean cancel_key\? Rename or drop it$",
    ):
        tables.resolve(misspelt, EVENTS)
    with pytest.warns(UserWarning, match=r"^events: the column 'progres' is ignored; did you mean progress\?"):
        tables.resolve(OPERATIONS, EVENTS.append_column("progres", pa.array([2])))
    tables.resolve(misspelt.append_column("cancel_key", misspelt[column]), EVENTS)  # then it is a further column


def test_a_second_time_limit_is_not_passed_over_in_silence() -> None:
    both = OPERATIONS.drop_columns("timeout_ms").append_column("timeout", pa.array(["1 min"] * 3))
    both = both.append_column("deadline", OPERATIONS["start"])
    said = r"^operations: the column 'deadline' is ignored beside 'timeout': drop one, or fill gaps of deadline with"
    with pytest.warns(UserWarning, match=said):
        tables.resolve(both, EVENTS)


@pytest.mark.parametrize("column", ["extended", "order_id", "customer", "condition_text", "time", "what", "kind_of"])
def test_a_further_column_is_ignored(column: str) -> None:
    tables.resolve(OPERATIONS.append_column(column, pa.array(["x"] * 3)), EVENTS)
