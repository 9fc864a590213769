"""Streams by all the rules on Spark, beside brute force: many small worlds a query, each an instance of its own."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from abeyant import pipeline
from abeyant import tables as in_process
from abeyant.errors import SchemaError
from abeyant.pipeline.resolver.streams import PENDING_WATCHES
from abeyant.pipeline.resolver.streams.rules.plan import columns_of_rules
from abeyant.pipeline.schemas import DETAILS
from abeyant.pipeline.sources.tables import complete, operations_from
from abeyant.tables.rules import Rules as AllRules
from pipeline.resolver.streams.kill import environment, kill_job, write_file
from pipeline.resolver.tables.test_rules import (
    EVENTS,
    HORIZON,
    MINUTE,
    OPERATIONS,
    TIME,
    World,
    ends_of,
    event_rows,
    given_of,
    operation_rows,
    with_hours_of_a_day,
)
from waits import by_brute_force, some_rules, some_waits

DISORDER = 3 * MINUTE


class Stream:
    """A stream over files below a folder, with a checkpoint there, run until all that is there has been read."""

    def __init__(self, spark: SparkSession, folder: Path, **how: Any) -> None:
        self.spark, self.folder = spark, folder
        self.how: dict[str, Any] = {"lateness": 0.0, "tick": None, "end_of_input": folder / "end", "shards": 4} | how
        self.schemas: dict[str, Any] = {}

    def put(self, operations: pa.Table, events: pa.Table) -> None:
        """Put a file of each table there, read after those before. Spark reads durations of Parquet as numbers."""
        for place, field in enumerate(operations.schema):
            if pa.types.is_duration(field.type):
                values = operations[field.name].cast(pa.int64()).to_pylist()
                texts = [None if value is None else f"{value} us" for value in values]
                operations = operations.set_column(place, field.name, pa.array(texts, pa.string()))
        for name, table in (("operations", operations), ("events", events)):
            number = len(list((self.folder / name).glob("*"))) if (self.folder / name).exists() else 0
            write_file(self.folder / name / f"{number:04}.parquet", table, number)

    def run(self, sink: Any = None) -> list[pipeline.BatchCounts]:
        frames = []
        for name in ("operations", "events"):
            place = str(self.folder / name)
            schema = self.schemas.setdefault(name, self.spark.read.parquet(place).schema)
            frames.append(self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(place))
        writer = pipeline.resolve_stream(*frames, **self.how).writeStream
        writer = writer.foreachBatch(sink or pipeline.ParquetSink(self.folder / "out"))
        query = writer.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        counts = [pipeline.batch_counts(progress) for progress in query.recentProgress]
        return [count for count in counts if count is not None]

    def end(self, sink: Any = None) -> list[pipeline.BatchCounts]:
        pipeline.end_of_input(self.folder / "end")
        return self.run(sink)

    def rejected(self) -> dict[str, dict[str, Any]]:
        """Return the rejected rows by their reason."""
        rows = self.spark.read.parquet(str(self.folder / "out" / "aside")).collect()
        return {row.reason: json.loads(row.row) for row in rows}


def put_worlds(stream: Stream, worlds: list[World], dice: random.Random, files: int) -> None:
    """Write the worlds' rows in an order of arrival that is out of order by at most `DISORDER`."""
    tables: list[list[pa.Table]] = []
    for rows, column, schema in ((operation_rows(worlds), "start", OPERATIONS), (event_rows(worlds), "at", EVENTS)):
        rows.sort(key=lambda row: (row[column] + dice.randint(0, DISORDER), dice.random()))
        edges = [0, *sorted(dice.randint(0, len(rows)) for _ in range(files - 1)), len(rows)]
        tables.append([pa.Table.from_pylist(rows[begin:end], schema) for begin, end in pairwise(edges)])
    for operations, events in zip(*tables, strict=True):
        stream.put(operations, events)


@pytest.mark.slow  # runs streams
@pytest.mark.parametrize("seed", range(6))
def test_a_drained_stream_equals_brute_force(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Which rules each of these seeds draws: see below."""
    dice = random.Random(seed)
    rules = with_hours_of_a_day(some_rules(dice))
    worlds = [some_waits(dice, rules) for _ in range(150)]
    stream = Stream(spark, tmp_path, lateness=DISORDER / 1e6, details=True, **given_of(rules))
    put_worlds(stream, worlds, dice, files=4)
    counts = [*stream.run(), *stream.end()]
    outcomes = spark.read.parquet(str(tmp_path / "out" / "outcomes")).drop("batch")
    assert outcomes.schema.simpleString() == DETAILS.simpleString()
    known = {
        (f"{number}", op_id): end
        for number, (waits, some) in enumerate(worlds)
        for op_id, end in by_brute_force(waits, some, rules, HORIZON).items()
    }
    assert ends_of(outcomes) == known, rules
    counted = {name: sum(getattr(count, name) for count in counts) for name in ("completed", "expired", "cancelled")}
    ends = [end.outcome for end in known.values()]
    assert counted == {name: ends.count(name) for name in counted}
    assert sum(count.completed + count.expired + count.cancelled for count in counts[:-1]) > len(known) / 3
    assert counts[-1].pending == 0
    assert sum(count.late + count.invalid + count.duplicates for count in counts) == 0


def test_the_seeds_hold_every_word() -> None:
    drawn = [some_rules(random.Random(seed)) for seed in range(6)]
    for name, values in (
        ("count", {"always", "from_start", "after_start"}),
        ("combine", {"max", "sum", "last"}),
        ("serves", {"every", "oldest", "newest"}),
        ("holds", {"ever", "at_deadline"}),
        ("within", {"whole", "step"}),
    ):
        assert {getattr(rules, name) for rules in drawn} == values, name


def table(schema: dict[str, pa.DataType], *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema(list(schema.items())))


KEYED = {"op_id": pa.string(), "key": pa.string(), "start": TIME, "timeout": pa.string(), "required": pa.int64()}
HAPPENED = {"key": pa.string(), "at": TIME, "progress": pa.int64()}


def happened(*rows: tuple[str, int, int]) -> pa.Table:
    return table(HAPPENED, *(dict(zip(HAPPENED, (key, MINUTE * at, n), strict=True)) for key, at, n in rows))


def keyed(*rows: tuple[str, str, int, str, int]) -> pa.Table:
    named = [dict(zip(KEYED, row, strict=True)) for row in rows]
    return table(KEYED, *(row | {"start": MINUTE * row["start"]} for row in named))  # type: ignore[operator]


@pytest.mark.slow
def test_operations_of_one_key_are_spread_by_it_and_what_waits_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """Paid in parts, each payment for one invoice: into a table, with its details; and read while it waits."""
    waiting = [(f"{n}", f"k{n}", 2, "1 d", 9) for n in range(20)]
    operations = keyed(("first", "k", 0, "30 min", 5), ("second", "k", 1, "1 h", 4), *waiting)
    stream = Stream(spark, tmp_path, serves="oldest", combine="sum", details=True)
    sink = pipeline.SQLiteSink(tmp_path / "outcomes.db")
    stream.put(
        operations, happened(("k", 3, 3), ("k", 4, 3), ("k", 5, 1), ("z", 6, 0), *((f"k{n}", 4, 1) for n in range(20)))
    )
    stream.put(keyed(("last", "z", 6, "0 s", 1)), happened(("z", 7, 0)))
    stream.run(sink)
    assert len(list((tmp_path / "checkpoint" / "state" / "0").iterdir())) > 1
    pending = pipeline.read_pending(spark, tmp_path / "checkpoint")
    assert pending.schema.simpleString() == PENDING_WATCHES.simpleString()
    waits = {row.op_id: (row.key, row.required) for row in pending.collect()}
    assert waits == {"second": ("k", 3), "last": ("z", 1)} | {f"{n}": (f"k{n}", 8) for n in range(20)}
    stream.put(keyed(("none", "z", 9, "0 s", 1)), happened(("k", 8, 7)))
    stream.end(sink)
    with closing(sqlite3.connect(tmp_path / "outcomes.db")) as database:
        rows = database.execute(
            "SELECT op_id, outcome, at_us, completed_by, completed_by_at_us, cancelled_by, counted FROM outcomes "
            "WHERE op_id IN ('first', 'second', '7') ORDER BY op_id"
        ).fetchall()
    assert rows == [
        ("7", "expired", (2 + 24 * 60) * MINUTE, None, None, None, 1),
        ("first", "completed", 4 * MINUTE, "k", 4 * MINUTE, None, 2),
        ("second", "completed", 8 * MINUTE, "k", 8 * MINUTE, None, 2),
    ]


@pytest.mark.slow  # runs a stream
def test_rows_that_cannot_be_resolved_or_contradict_the_rules_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    watches = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64()), ("role", pa.string())]))
    schema = {"op_id": pa.string(), "start": TIME, "timeout_ms": pa.int64(), "watches": watches}
    one, cancel = {"key": "k", "required": 1, "role": None}, {"key": "k", "required": 9, "role": "cancel"}
    rows = [("fine", [one, cancel]), ("two", [one, one]), ("odd", [one | {"role": "end"}]), ("none", [])]
    operations = table(schema, *({"op_id": n, "start": 0, "timeout_ms": 5, "watches": some} for n, some in rows))
    stream = Stream(spark, tmp_path, serves="newest")
    stream.put(operations, happened(("k", 0, 1)))
    stream.run()
    stream.end()
    assert [row.op_id for row in spark.read.parquet(str(tmp_path / "out" / "outcomes")).collect()] == ["fine"]
    rejected = stream.rejected()
    assert {reason.partition(", which")[0]: row["op_id"] for reason, row in rejected.items()} == {
        "has several watches with role 'complete'": "two", "a watch has an unknown role": "odd", "no watches": "none",
    }  # fmt: skip


@pytest.mark.slow  # several runs of a stream
def test_other_rules_or_columns_than_those_of_the_checkpoint_are_refused_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path, count="after_start")
    some = keyed(("first", "k", 0, "30 min", 5)), happened(("k", 3, 3))
    stream.put(*some)
    stream.run()
    stream.put(*some)
    for other, said in (
        ({"count": "from_start"}, "count='after_start', not 'from_start'"),
        ({"count": "after_start", "details": True}, "details=False, not True"),
        (
            {"count": "after_start", "calendar": in_process.Calendar("Mon-Fri 09:00-17:00")},
            r"calendar=None, not \"Calendar\('Mon-Fri 09:00-17:00', zone='UTC', holidays=\[\]\)\"",
        ),
    ):
        with pytest.raises(StreamingQueryException, match=f"StateError: the checkpoint was begun with {said}"):
            Stream(spark, tmp_path, **other).run()


@pytest.mark.slow  # several runs of a stream
def test_a_plain_checkpoint_does_not_go_on_with_rules_nor_one_with_rules_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    operations = table(
        {"op_id": pa.string(), "key": pa.string(), "start": TIME, "timeout_ms": pa.int64()},
        {"op_id": "a", "key": "k", "start": 0, "timeout_ms": 5},
    )
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({}, {"combine": "sum"}, "combine='max', not 'sum'"),
        ({"combine": "sum"}, {}, "combine='sum', not 'max'"),
    ]
    for first, second, said in cases:
        folder = tmp_path / ("rules" if first else "plain")
        for rules in (first, second):
            stream = Stream(spark, folder, **rules)
            stream.put(operations, happened(("k", 3, 3)))
            if rules == first:
                stream.run()
        with pytest.raises(StreamingQueryException, match=f"StateError: the checkpoint was begun with {said}"):
            stream.run()


def test_contradictions_are_refused_before_the_query_starts(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, serves="oldest", combine="last")
    stream.put(keyed(), happened())
    with pytest.raises(ValueError, match="serves='oldest' and combine='last' exclude each other"):
        stream.run()
    stream = Stream(spark, tmp_path / "deadline", calendar=in_process.Calendar("Mon 09:00-10:00"))
    instants = {name: kind for name, kind in KEYED.items() if name != "timeout"} | {"deadline": TIME}
    stream.put(table(instants), happened())
    with pytest.raises(SchemaError, match="a deadline cannot be combined with a calendar"):
        stream.run()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sums that serve one", "levels, pauses and extensions"])
def test_no_outcome_is_lost_or_changed_when_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    from pipeline.resolver.streams.rules_job import RULES, settings, worlds

    put_worlds(Stream(spark, tmp_path, **settings(name)), worlds(name), random.Random(1), files=9)
    command = [sys.executable, "-m", "pipeline.resolver.streams.rules_job", str(tmp_path), name]
    kill_job(tmp_path, command, 2, 9, environment=environment())
    known = {
        (f"{number}", op_id): end
        for number, (waits, some) in enumerate(worlds(name))
        for op_id, end in by_brute_force(waits, some, RULES[name], HORIZON).items()
    }
    roles = {watch.role for waits, _ in worlds(name) for wait in waits for watch in wait.watches}
    assert roles == {"complete", "cancel", "extend", "pause"}
    assert ends_of(spark.read.parquet(str(tmp_path / "out" / "outcomes"))) == known


def test_tables_with_a_key_are_spread_by_it_and_lists_of_watches_by_instance(spark: SparkSession) -> None:
    keyed = spark.createDataFrame([], "op_id string, key string, start timestamp, timeout_ms bigint, died string")
    listed = complete(keyed, "operations").selectExpr("*", "array(watches[0]) AS others").drop("watches")
    tables = {
        "key": (keyed, False),
        "mapped": (operations_from(keyed), False),
        "cancelled": (operations_from(keyed, {"cancel_key": "died"}), True),
        "list": (listed.withColumnRenamed("others", "watches"), True),
    }
    for name, (table, several) in tables.items():
        columns = columns_of_rules(table, AllRules(count="after_start"))
        assert columns is not None
        assert columns.several_keys is several, name
