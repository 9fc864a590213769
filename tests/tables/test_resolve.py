"""`tables.resolve` beside brute force, case by case; and over anything with an Arrow interface."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from abeyant import tables
from abeyant.errors import AbeyantError, SchemaError
from abeyant.tables.schemas import OUTCOMES
from pipeline.resolve_traces import Deadline, Event, Op, Outcomes, Trace, Watch, by_brute_force, some_traces
from pipeline.trace_rows import ARROW_EVENTS, ARROW_OPERATIONS, EPOCH_US, event_row, operation_row


def arrow(traces: list[Trace]) -> tuple[pa.Table, pa.Table]:
    """All traces in one pair of tables, each an instance of its own; the events of all are mixed."""
    operations = [operation_row(op, f"t{n}") for n, trace in enumerate(traces) for op in trace.operations]
    events = [event_row(event, f"t{n}") for n, trace in enumerate(traces) for event in trace.events]
    random.Random(5).shuffle(events)
    return pa.Table.from_pylist(operations, ARROW_OPERATIONS), pa.Table.from_pylist(events, ARROW_EVENTS)


def by_instance(outcomes: pa.Table) -> dict[str, Outcomes]:
    """What was found, and each row once (O4), with a wait that agrees with its time."""
    assert outcomes.schema == OUTCOMES
    found: dict[str, Outcomes] = {}
    at = outcomes["at"].cast(pa.int64()).to_pylist()
    for instance, op_id, outcome, end in zip(
        *(outcomes[name].to_pylist() for name in ("instance", "op_id", "outcome")), at, strict=True
    ):
        ends = found.setdefault(instance, {})
        assert op_id not in ends, f"O4: {instance} {op_id} has two outcomes"
        ends[op_id] = (outcome, end - EPOCH_US)
    return found


@cache
def traces() -> list[Trace]:
    return some_traces(3000, seed=20261121)


@pytest.mark.parametrize("deadline", ["inclusive", "exclusive"])
@pytest.mark.parametrize("threads", [1, 3])
def test_o1_to_o4_equal_brute_force(deadline: Deadline, threads: int) -> None:
    found = by_instance(tables.resolve(*arrow(traces()), deadline=deadline, threads=threads))
    for number, trace in enumerate(traces()):
        assert found[f"t{number}"] == by_brute_force(trace, deadline), trace


def test_outcomes_come_in_the_order_of_operations_with_their_waits() -> None:
    operations, events = arrow(traces()[:300])
    outcomes = tables.resolve(operations, events)
    assert outcomes.select(["instance", "op_id", "kind"]) == operations.select(["instance", "op_id", "kind"])
    waited = (outcomes["at"].cast(pa.int64()).to_numpy() - operations["start"].cast(pa.int64()).to_numpy()) / 1000
    assert waited.tolist() == outcomes["waited_ms"].to_pylist()


@pytest.mark.parametrize("shape", ["one value", "grows", "falls", "at random"])
def test_one_key_with_all_events_of_many_chunks(shape: str) -> None:
    """Piles that are reduced again and again, by several threads at once."""
    dice = random.Random(3)
    levels: dict[str, Callable[[int], int]] = {
        "one value": lambda n: 5,
        "grows": lambda n: n,
        "falls": lambda n: -n,
        "at random": lambda n: dice.randrange(1000),
    }
    count = 600
    rows = [Event("hot", n * 2000, levels[shape](n)) for n in range(count)]
    ops = [
        Op(f"op-{n}", dice.randrange(10**6), dice.randrange(100), (Watch("hot", dice.choice(rows).progress),), "all")
        for n in range(200)
    ]
    operations, events = arrow([Trace(ops, rows)])
    many = pa.concat_tables([events] * 250)  # 150,000 rows: more than a shard gathers before it is reduced
    reader = pa.RecordBatchReader.from_batches(events.schema, iter(many.to_batches(max_chunksize=100)))
    assert by_instance(tables.resolve(operations, reader))["t0"] == by_brute_force(Trace(ops, rows), "inclusive")


# -- anything with an Arrow interface ---------------------------------------------------------------------------------

FORMS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "table": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(max_chunksize=7),
    "record batch": lambda table, _: table.combine_chunks().to_batches()[0],
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "dataset": lambda table, _: ds.dataset(table),
    "large types": lambda table, _: table.cast(large(table.schema)),
    "Parquet file": lambda table, path: written(table, path / "table.parquet"),
    "Parquet folder": lambda table, path: parted(table, path / "folder"),
}


def large(schema: pa.Schema) -> pa.Schema:
    """Other types for the same: large and dictionary-encoded text, narrow integers, milliseconds stay microseconds."""
    kinds = {
        "instance": pa.dictionary(pa.int8(), pa.string()),
        "key": pa.large_string(),
        "op_id": pa.large_string(),
        "timeout_ms": pa.int32(),
        "progress": pa.int16(),
        "watches": pa.large_list(pa.struct([("required", pa.int32()), ("key", pa.large_string())])),
    }
    kinds.pop("watches")
    return pa.schema([(field.name, kinds.get(field.name, field.type)) for field in schema])


def written(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path)
    return path


def parted(table: pa.Table, folder: Path) -> str:
    folder.mkdir()
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "a.parquet")
    pq.write_table(table.slice(half), folder / "b.parquet")
    return str(folder)


@pytest.mark.parametrize("form", FORMS)
def test_whatever_speaks_arrow_is_taken(form: str, tmp_path: Path) -> None:
    some = traces()[:50]
    operations, events = arrow(some)
    (tmp_path / "o").mkdir()
    (tmp_path / "e").mkdir()
    found = by_instance(tables.resolve(FORMS[form](operations, tmp_path / "o"), FORMS[form](events, tmp_path / "e")))
    for number, trace in enumerate(some):
        assert found[f"t{number}"] == by_brute_force(trace, "inclusive"), trace
    assert (
        tables.rejected_operations(
            FORMS[form](operations, tmp_path / "o2") if "Parquet" not in form else operations
        ).num_rows
        == 0
    )


def in_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string_view())


def in_a_dictionary_of_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    of = column.combine_chunks().dictionary_encode()
    return pa.chunked_array([pa.DictionaryArray.from_arrays(of.indices, of.dictionary.cast(pa.string_view()))])


def in_runs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.run_end_encode(column)


@pytest.mark.parametrize("handed", [lambda table: table, ds.dataset], ids=["table", "dataset"])
@pytest.mark.parametrize("form", [in_views, in_a_dictionary_of_views, in_runs])
def test_views_and_runs_are_taken_for_what_they_mean(
    form: Callable[[pa.ChunkedArray], pa.ChunkedArray], handed: Callable[[pa.Table], Any]
) -> None:
    operations, events = arrow(traces()[:20])
    expected = tables.resolve(operations, events)

    def changed(table: pa.Table, names: list[str]) -> Any:
        for name in names:
            table = table.set_column(table.column_names.index(name), name, form(table[name]))
        return handed(table)

    operations = operations.append_column("note", operations["op_id"])
    operations = changed(operations, ["instance", "op_id", "kind", "condition", "note"])
    assert tables.resolve(operations, changed(events, ["instance", "key"])) == expected
    assert tables.rejected_operations(operations).num_rows == 0


def test_views_within_a_further_column_are_rejected_with_their_row() -> None:
    operations, _ = arrow(traces()[:1])
    operations = operations.slice(0, 1).drop_columns(["op_id"]).append_column("op_id", pa.nulls(1, pa.string()))
    pairs = pa.array([{"a": 1}], pa.map_(pa.string_view(), pa.int64()))
    names = pa.array([["b"]], pa.list_(pa.string_view(), 1))
    (row,) = tables.rejected_operations(operations.append_column("pairs", pairs).append_column("of", names)).to_pylist()
    assert (row["pairs"], row["of"], row["reason"]) == ([("a", 1)], ["b"], "no op_id")


IN_DUCKDB = """
import sys
import duckdb
from abeyant import tables
connection = duckdb.connect()
operations, events = (connection.sql(f"SELECT * FROM '{path}'") for path in sys.argv[1:])
outcomes = tables.resolve(operations, events)
print(connection.sql("SELECT outcome, count(*) FROM outcomes GROUP BY ALL ORDER BY ALL").fetchall())
"""


def test_relations_of_one_connection_of_duckdb_are_taken_and_it_takes_the_outcomes(tmp_path: Path) -> None:
    """It answers one query at a time. (In a process of its own, for DuckDB does not like how pytest ends.)"""
    operations, events = arrow(traces()[:50])
    paths = [
        written(table, tmp_path / f"{name}.parquet") for name, table in (("operations", operations), ("events", events))
    ]
    run = subprocess.run(
        [sys.executable, "-c", IN_DUCKDB, *map(str, paths)], capture_output=True, text=True, check=True, timeout=120
    )
    expected = Counter(tables.resolve(operations, events)["outcome"].to_pylist())
    assert run.stdout.strip() == str(sorted(expected.items()))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_times_of_any_unit_and_zone_are_one_instant(unit: str, zone: str | None) -> None:
    operations = pa.Table.from_pylist([operation_row(Op("a", 0, 60_000, (Watch("k", 1),), None))], ARROW_OPERATIONS)
    events = pa.Table.from_pylist([event_row(Event("k", 7_000_000, 1))], ARROW_EVENTS)

    def in_unit(table: pa.Table, name: str) -> pa.Table:
        column = table[name].cast(pa.timestamp(unit, "UTC")).cast(pa.int64())
        return table.set_column(table.column_names.index(name), name, column.cast(pa.timestamp(unit, zone)))

    outcome = tables.resolve(in_unit(operations, "start"), in_unit(events, "at")).to_pylist()[0]
    assert (outcome["outcome"], outcome["waited_ms"]) == ("completed", 7000.0)


def test_nanoseconds_are_floored() -> None:
    events = pd.DataFrame(
        {"instance": ["i"], "key": ["k"], "at": [pd.Timestamp(1999, unit="ns", tz="UTC")], "progress": [1]}
    )
    operation = operation_row(Op("a", -EPOCH_US, 1, (Watch("k", 1),), None))
    outcome = tables.resolve(pa.Table.from_pylist([operation], ARROW_OPERATIONS), events)
    assert outcome["at"].cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize("form", [lambda table: table, pl.from_pandas, pa.Table.from_pandas])
def test_times_with_a_zone_beside_times_without_are_warned_of(form: Callable[[pd.DataFrame], Any]) -> None:
    naive = pd.Timestamp("2026-03-02 12:00")
    aware = naive.tz_localize("UTC")

    def resolved(start: pd.Timestamp, at: pd.Timestamp) -> list[str]:
        orders = pd.DataFrame({"op_id": ["1"], "key": ["1"], "start": [start], "timeout": ["1 h"]})
        found: list[str] = tables.resolve(form(orders), form(pd.DataFrame({"key": ["1"], "at": [at]})))[
            "outcome"
        ].to_pylist()
        return found

    assert resolved(naive, naive) == resolved(aware, aware.tz_convert("Europe/Berlin")) == ["completed"]
    with pytest.warns(UserWarning, match="the times in 'at' have none and are taken as UTC") as warned:
        assert resolved(aware, naive) == ["completed"]
    assert warned[0].filename == __file__
    with pytest.warns(UserWarning, match="the times in 'start' have none and are taken as UTC"):
        resolved(naive, aware)


def test_a_null_in_a_dictionary_is_a_null() -> None:
    operations, events = arrow(traces()[:1])
    operations, events = operations.slice(0, 1), events.slice(0, 1)

    def without(table: pa.Table, name: str) -> pa.Table:
        nothing = pa.chunked_array([pa.DictionaryArray.from_arrays([0], pa.array([None], pa.string()))])
        return table.set_column(table.column_names.index(name), name, nothing)

    for name in ("instance", "op_id"):
        lacking = without(operations, name)
        assert tables.rejected_operations(lacking)["reason"].to_pylist() == [f"no {name}"]
        assert tables.resolve(lacking, events).num_rows == 0
    row = operation_row(Op("a", 0, 1000, (Watch("", 1),), None))
    event = {**event_row(Event("", 0, 1)), "instance": row["instance"]}
    asked, known = pa.Table.from_pylist([row], ARROW_OPERATIONS), pa.Table.from_pylist([event], ARROW_EVENTS)
    assert tables.resolve(asked, known)["outcome"].to_pylist() == ["completed"]
    assert tables.resolve(asked, without(known, "key"))["outcome"].to_pylist() == ["expired"]
    assert tables.rejected_events(without(known, "key"))["reason"].to_pylist() == ["no key"]


def test_batches_are_found_one_after_the_other_and_memory_stays(tmp_path: Path) -> None:
    some = traces()[:200]
    operations, events = arrow(some)
    taken = 0

    def read() -> Any:
        nonlocal taken
        for batch in operations.to_batches(max_chunksize=50):
            taken += 1
            yield pa.concat_batches([batch] * 1)

    reader = tables.resolve_batches(pa.RecordBatchReader.from_batches(operations.schema, read()), events)
    assert taken == 0  # nothing of the operations before the outcomes are asked for
    assert by_instance(reader.read_all()) == by_instance(tables.resolve(operations, events))


@pytest.mark.parametrize(
    ("column", "values", "named"),
    [
        ("cancel_key", pa.array(["x"] * 5), "the column cancel_key"),
        ("extend_key", pa.array(["x"] * 5), "the column extend_key"),
        ("pause_key", pa.array(["x"] * 5), "the column pause_key"),
        ("condition", pa.array(["all"] * 4 + ["then"]), "the condition 'then'"),
    ],
)
def test_batches_with_further_rules_are_refused(column: str, values: pa.Array, named: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    operations = pa.table(
        {"op_id": list("abcde"), "key": ["k"] * 5, "start": [start] * 5, "timeout_ms": [1] * 5}
    ).append_column(column, values)
    events = pa.table({"key": ["k"], "at": [datetime(2026, 1, 1, tzinfo=UTC)]})
    assert tables.resolve(operations, events).num_rows == 5
    with pytest.raises(SchemaError, match=rf"^operations: resolve_batches does not support {named}: use resolve$"):
        tables.resolve_batches(operations, events).read_all()


@pytest.mark.parametrize("empty", ["operations", "events", "both"])
def test_tables_without_rows(empty: str) -> None:
    operations, events = arrow(traces()[:5])
    if empty != "events":
        operations = operations.slice(0, 0)
    if empty != "operations":
        events = events.slice(0, 0)
    outcomes = tables.resolve(operations, events)
    assert outcomes.num_rows == operations.num_rows
    assert outcomes.schema == OUTCOMES
    assert set(outcomes["outcome"].to_pylist()) <= {"expired"}
    assert tables.rejected_operations(operations).num_rows == tables.rejected_events(events).num_rows == 0


# -- refused ---------------------------------------------------------------------------------------------------------


def test_what_is_no_such_table_is_refused_by_name(tmp_path: Path) -> None:
    operations, events = arrow(traces()[:2])
    with pytest.raises(TypeError, match=r"events must be a table with an Arrow interface .*, not list"):
        tables.resolve(operations, [])
    with pytest.raises(tables.SchemaError, match=r"events: no column 'at', expected a timestamp \(columns: instance"):
        tables.resolve(operations, events.drop_columns(["at"]))
    with pytest.raises(tables.SchemaError, match="events: column 'progress' is string, expected an integer"):
        tables.resolve(operations, events.set_column(3, "progress", events["progress"].cast(pa.string())))
    with pytest.raises(tables.SchemaError, match="operations: column 'watches' is string, expected a list of structs"):
        tables.rejected_operations(operations.set_column(5, "watches", operations["op_id"]))
    with pytest.raises(AbeyantError, match=r"operations: no such file or directory: .*nowhere"):
        tables.resolve(tmp_path / "nowhere", events)
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(AbeyantError, match=r"events: cannot read .*text.parquet as Parquet"):
        tables.resolve(operations, tmp_path / "text.parquet")
    (tmp_path / "text.csv").write_text("key,at")
    with pytest.raises(
        AbeyantError, match=r"text.csv as Parquet: give the table that pandas.read_csv\(...\) makes of it"
    ):
        tables.resolve(operations, tmp_path / "text.csv")
    with pytest.raises(ValueError, match="deadline must be 'inclusive' or 'exclusive', not 'open'"):
        tables.resolve(operations, events, deadline="open")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads must be a positive integer, not 0"):
        tables.resolve(operations, events, threads=0)


def test_numbers_beyond_64_bits_are_refused_by_name() -> None:
    operations, events = arrow(traces()[:2])
    large_ones = pa.array(np.full(events.num_rows, 2**63, np.uint64))
    with pytest.raises(AbeyantError, match=r"events: progress: .*the maximum is 9,223,372,036,854,775,807"):
        tables.resolve(operations, events.set_column(3, "progress", large_ones))
    far = pa.array(np.full(events.num_rows, 2**62)).cast(pa.timestamp("s", "UTC"))
    with pytest.raises(AbeyantError, match="events: at: a time does not fit 64-bit microseconds"):
        tables.resolve(operations, events.set_column(2, "at", far))


def test_an_error_of_the_source_reaches_the_caller() -> None:
    operations, events = arrow(traces()[:2])

    def broken() -> Any:
        yield events.to_batches()[0]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        tables.resolve(operations, pa.RecordBatchReader.from_batches(events.schema, broken()))
