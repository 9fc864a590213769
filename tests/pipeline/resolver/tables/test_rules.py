"""All rules on Spark, beside brute force and `abeyant.tables`: many small worlds a job, each an instance of its own."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant import tables as in_process
from abeyant.errors import SchemaError
from abeyant.pipeline.resolver.tables.hot_keys import Sample
from abeyant.pipeline.schemas import DETAILS, OUTCOMES
from seeds import seeds, with_slow
from waits import End, Event, Rules, Wait, by_brute_force, some_rules, some_waits

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64()), ("role", pa.string())]))
MINUTE = 60_000_000
HORIZON = 400
DAY = 24 * 60  # brute force goes by minutes of a day, so that a calendar can be real

OPERATIONS = pa.schema(
    [
        ("instance", pa.string()),
        ("op_id", pa.string()),
        ("kind", pa.string()),
        ("start", TIME),
        ("timeout", pa.duration("us")),
        ("extend", pa.duration("us")),
        ("watches", WATCHES),
        ("condition", pa.string()),
    ]
)
EVENTS = pa.schema([("instance", pa.string()), ("key", pa.string()), ("at", TIME), ("progress", pa.int64())])

World = tuple[list[Wait], list[Event]]


def operation_rows(worlds: Iterable[World]) -> list[dict[str, Any]]:
    return [
        {
            "instance": f"{number}",
            "op_id": wait.op_id,
            "kind": wait.condition,
            "start": MINUTE * wait.start,
            "timeout": MINUTE * wait.timeout,
            "extend": None if wait.extend is None else MINUTE * wait.extend,
            "watches": [watch._asdict() for watch in wait.watches],
            "condition": wait.condition,
        }
        for number, (waits, _) in enumerate(worlds)
        for wait in waits
    ]


def event_rows(worlds: Iterable[World]) -> list[dict[str, Any]]:
    return [
        {"instance": f"{number}", "key": event.key, "at": MINUTE * event.at, "progress": event.progress}
        for number, (_, events) in enumerate(worlds)
        for event in events
    ]


def calendar_of(hours: tuple[tuple[int, int], ...] | None) -> in_process.Calendar | None:
    """Hours of the first day of 1970, a Thursday."""
    if hours is None:
        return None
    clock = [f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}" for begin, end in hours]
    return in_process.Calendar(", ".join(f"Thu {span}" for span in clock))


def given_of(rules: Rules) -> dict[str, Any]:
    given = asdict(rules)
    given["calendar"] = calendar_of(given.pop("hours"))
    return given


def minutes(at: datetime | None) -> int | None:
    return None if at is None else round(at.replace(tzinfo=UTC).timestamp() / 60)


def ends_of(outcomes: DataFrame) -> dict[tuple[str, str], End]:
    ends = {}
    for row in outcomes.collect():
        by = {
            name: None if row[name] is None else (row[name].key, minutes(row[name].at))
            for name in ("completed_by", "cancelled_by")
        }
        end = End(row.outcome, minutes(row.at), by["completed_by"], by["cancelled_by"], row.counted)  # type: ignore[arg-type]
        assert (row.instance, row.op_id) not in ends
        ends[row.instance, row.op_id] = end
    return ends


def with_hours_of_a_day(rules: Rules) -> Rules:
    if rules.hours is None:
        return rules
    return Rules(**{**asdict(rules), "hours": (*rules.hours[:2], (rules.hours[2][0], DAY))})


@pytest.mark.parametrize("seed", seeds(24, quick=2))
def test_all_rules_equal_brute_force(spark: SparkSession, seed: int) -> None:
    dice = random.Random(seed)
    rules = with_hours_of_a_day(some_rules(dice))
    worlds = [some_waits(dice, rules) for _ in range(60)]
    operations, events = operation_rows(worlds), event_rows(worlds)
    dice.shuffle(operations)
    dice.shuffle(events)
    tables = pa.Table.from_pylist(operations, OPERATIONS), pa.Table.from_pylist(events, EVENTS)
    frames = [spark.createDataFrame(table).repartition(2) for table in tables]
    found = pipeline.resolve(*frames, **given_of(rules), details=True, unique_ids=bool(seed % 2))
    assert found.schema.simpleString() == DETAILS.simpleString()
    known = {
        (f"{number}", op_id): end
        for number, (waits, some) in enumerate(worlds)
        for op_id, end in by_brute_force(waits, some, rules, HORIZON).items()
    }
    assert ends_of(found) == known, rules


def rows_of(table: DataFrame | pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order of their own, times as microseconds: some are beyond Python's."""
    arrow = table.toArrow() if isinstance(table, DataFrame) else table
    for place, field in enumerate(arrow.schema):
        if pa.types.is_timestamp(field.type):
            arrow = arrow.set_column(place, field.name, arrow.column(place).cast(pa.int64()))
    return sorted((tuple(map(str, row.values())) for row in arrow.to_pylist()), key=str)


def hostile_operations() -> pa.Table:
    """Every reason and many duplicates, which differ in any column, or in none."""
    dice = random.Random(3)
    rows = []
    for number in range(400):
        watches = [
            {"key": dice.choice(["a", "b"]), "required": dice.choice([1, 2]), "role": dice.choice(["cancel", None])}
            for _ in range(dice.choice([1, 1, 2]))
        ]
        row: dict[str, Any] = {
            "instance": dice.choice(["x", "y"]),
            "op_id": f"{dice.randrange(60)}",
            "kind": dice.choice(["k", None]),
            "start": MINUTE * dice.choice([0, 1]),
            "timeout": dice.choice(["1 min", "60 s", "0 s", "2 minutes 3 s"]),
            "extend": dice.choice([None, "5 s", "10 s"]),
            "watches": watches,
            "condition": dice.choice(["all", "any", "then", None]),
            "cancel_key": dice.choice([None, "a", "c"]),
            "pause_key": None,
            "extend_key": dice.choice([None, "b"]),
        }
        if dice.random() < 0.3:
            broken: list[dict[str, Any]] = [
                {"instance": None},
                {"start": None},
                {"timeout": None},
                {"timeout": "soon"},
                {"timeout": "400000 weeks 1e3"},
                {"timeout": f"{2**62} us", "start": 2**62},
                {"extend": "a while"},
                {"watches": []},
                {"watches": None},
                {"watches": [{"key": None, "required": 1, "role": None}]},
                {"watches": [{"key": "k", "required": None, "role": None}]},
                {"watches": [{"key": "k", "required": 1, "role": "finish"}, {"key": "k", "required": 1}]},
                {"watches": [{"key": "k", "required": 1, "role": "pause"}] * 2},
                {"watches": [{"key": "k", "required": 1, "role": "pause"}], "pause_key": "p"},
                {"condition": "some"},
            ]
            row |= {"op_id": f"broken {number}"} | dice.choice(broken)
        rows.append(row)
    texts = dict.fromkeys(("cancel_key", "pause_key", "extend_key", "timeout", "extend"), pa.string())
    schema = pa.schema([(field.name, texts.get(field.name, field.type)) for field in OPERATIONS])
    for name in ("cancel_key", "pause_key", "extend_key"):
        schema = schema.append(pa.field(name, pa.string()))
    return pa.Table.from_pylist(rows, schema)


HOSTILE_EVENTS = pa.Table.from_pylist(
    [
        {"instance": instance, "key": key, "at": MINUTE * at // 2, "progress": 1 + at % 2}
        for instance in "xy"
        for key in "abc"
        for at in range(-2, 8)
    ],
    EVENTS,
)


@pytest.fixture(scope="module")
def hostile(spark: SparkSession) -> tuple[pa.Table, DataFrame, DataFrame]:
    table = hostile_operations()
    return table, spark.createDataFrame(table).repartition(3), spark.createDataFrame(HOSTILE_EVENTS)


def test_rows_are_rejected_for_the_same_reasons_as_in_process(hostile: tuple[pa.Table, DataFrame, DataFrame]) -> None:
    table, operations, _ = hostile
    columns = ["instance", "op_id", "kind", "start", "condition", "cancel_key", "watches", "reason"]
    found = rows_of(pipeline.rejected_operations(operations).select(*columns))
    known = in_process.rejected_operations(table).select(columns)
    assert found == rows_of(known)
    assert len({reason.partition(":")[0] for reason in known["reason"].to_pylist()}) >= 13


@pytest.mark.parametrize("sample", [None, Sample(fraction=1.0, piece=1)], ids=["small", "large"])
def test_of_rows_with_one_id_the_same_counts_as_in_process(
    hostile: tuple[pa.Table, DataFrame, DataFrame], sample: Sample | None
) -> None:
    table, operations, events = hostile
    found = pipeline.resolve(operations, events, count="from_start", details=True, sample=sample)
    known = in_process.resolve(table, HOSTILE_EVENTS, count="from_start", details=True)
    assert rows_of(found) == rows_of(known)
    assert {*known["outcome"].to_pylist()} == {"completed", "cancelled", "expired"}


# -- steps among operations that ask for nothing more ------------------------------------------------------------------


def plain_rows(*conditions: str | None) -> pa.Table:
    rows = [
        {
            "instance": "",
            "op_id": f"{number // 2}",  # of two rows with one id the first counts, whichever asks for more
            "kind": None,
            "start": MINUTE * (number % 2),
            "timeout_ms": 60_000 * (number % 3),
            "watches": [{"key": "a", "required": 1}, {"key": "b", "required": 1}],
            "condition": condition,
        }
        for number, condition in enumerate(conditions)
    ]
    watches = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64())]))
    kinds = {"timeout_ms": pa.int64(), "watches": watches, "start": TIME}
    return pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]]))


STEP_EVENTS = pa.Table.from_pylist(
    [{"instance": "", "key": key, "at": MINUTE * at, "progress": 1} for key, at in [("a", 1), ("b", 0), ("b", 2)]],
    EVENTS,
)


@pytest.mark.slow  # many tables
@pytest.mark.parametrize("sample", [None, Sample(fraction=1.0, piece=1)], ids=["small", "large"])
@pytest.mark.parametrize(
    "conditions",
    with_slow([("all", "then", "any", "all", "then", "any", "then", "then"), ("all", "any")], [("all", "any")]),
)
def test_steps_are_found_among_plain_operations(
    spark: SparkSession, tmp_path: Path, conditions: tuple[str, ...], sample: Sample | None
) -> None:
    table = plain_rows(*conditions)
    pq.write_table(table, tmp_path / "operations.parquet")
    known = rows_of(in_process.resolve(table, STEP_EVENTS))
    events = spark.createDataFrame(STEP_EVENTS)
    for operations in (spark.createDataFrame(table), spark.read.parquet(f"{tmp_path}")):
        assert rows_of(pipeline.resolve(operations, events, sample=sample)) == known


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_of_their_own_and_three_ways_to_say_how_long(either: SparkSession) -> None:
    start = datetime(2026, 3, 2, 12, tzinfo=UTC)
    minute = timedelta(minutes=1)
    rows = [
        ("died", "organ/1", "died/1", None, None, "1 h", 60 * minute, start + 60 * minute, start),
        ("browses", "buys/2", None, "click/2", None, "30 min", 30 * minute, start + 30 * minute, start),
        ("on hold", "answer/3", None, None, "hold/3", "1 h 30 min", 90 * minute, start + 90 * minute, start),
        ("for ever", "answer/4", None, None, "hold/4", "1 h", 60 * minute, start + 60 * minute, start),
    ]
    names = ["op_id", "key", "cancel_key", "extend_key", "pause_key", "timeout", "as_interval", "as_instant", "start"]
    table = either.createDataFrame(rows, ", ".join(f"{n} {t}" for n, t in zip(names, SPARK_TYPES, strict=True)))
    happened = [("died/1", 5), ("organ/1", 6), ("click/2", 20), ("click/2", 45), ("hold/3", 10), ("hold/4", 1)]
    events = either.createDataFrame(
        [(key, start + at * minute, 1) for key, at in happened] + [("hold/3", start + 70 * minute, 0)],
        "key string, at timestamp, progress bigint",
    )
    known = {"died": ("cancelled", 5), "browses": ("expired", 75), "on hold": ("expired", 150)}
    for operations in (
        table.drop("as_interval", "as_instant"),
        table.drop("timeout", "as_instant").withColumnRenamed("as_interval", "timeout"),
    ):
        found = pipeline.resolve(operations, events).collect()
        ends = {row.op_id: (row.outcome, None if row.at is None else (row.at - NOON) / minute) for row in found}
        assert ends == known | {"for ever": ("pending", None)}
        assert [row.waited_ms for row in found if row.at is None] == [None]
    instants = table.drop("timeout", "as_interval", "pause_key").withColumnRenamed("as_instant", "Deadline")
    found = pipeline.resolve(instants.withColumn("extend", F.lit("1 h")), events).collect()
    ends = {row.op_id: (row.outcome, (row.at - NOON) / minute) for row in found}
    assert ends == {
        "died": ("cancelled", 5),
        "browses": ("expired", 105),
        "on hold": ("expired", 90),
        "for ever": ("expired", 60),
    }


@pytest.mark.slow  # many tables
def test_a_session_needs_no_key_that_completes_it(either: SparkSession) -> None:
    rows = [("long", "1", NOON, "PT30M"), ("short", "2", NOON, "0 days 00:30:00"), ("none", None, NOON, "30 min")]
    table = either.createDataFrame(rows, "op_id string, Extend_Key string, start timestamp, timeout string")
    clicks = [(key, NOON + timedelta(minutes=at)) for key, at in [("1", 20), ("1", 50), ("2", 31)]]
    found = pipeline.resolve(table, either.createDataFrame(clicks, "key string, at timestamp"), details=True).collect()
    assert {row.op_id: (row.outcome, row.at - NOON, row.counted) for row in found} == {
        "long": ("expired", timedelta(minutes=80), 2),
        "short": ("expired", timedelta(minutes=30), 0),
    }
    assert [row.reason for row in pipeline.rejected_operations(table).collect()] == ["a watch has no key"]


SPARK_TYPES = (*["string"] * 6, "interval day to second", "timestamp", "timestamp")
NOON = datetime(2026, 3, 2, 12)  # of rows that are collected


def test_tables_of_arrow_may_have_the_rules_too(spark: SparkSession) -> None:
    table = hostile_operations()
    rules: Any = {"combine": "sum", "count": "after_start"}
    found = pipeline.resolve(table, HOSTILE_EVENTS, **rules)
    assert found.schema.simpleString() == OUTCOMES.simpleString()
    assert rows_of(found) == rows_of(in_process.resolve(table, HOSTILE_EVENTS, **rules))
    assert rows_of(pipeline.rejected_operations(table).select("op_id", "reason")) == rows_of(
        in_process.rejected_operations(table).select(["op_id", "reason"])
    )


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_rules_that_contradict_each_other_are_refused_at_once(spark: SparkSession) -> None:
    tables = plain_rows("all"), STEP_EVENTS
    with pytest.raises(ValueError, match="serves='oldest' and combine='last' exclude each other"):
        pipeline.resolve(*tables, serves="oldest", combine="last")
    with pytest.raises(ValueError, match="count must be 'always', 'from_start' or 'after_start', not 'later'"):
        pipeline.resolve(*tables, count="later")  # type: ignore[arg-type]
    fixed = tables[0].drop_columns(["timeout_ms"]).append_column("deadline", tables[0]["start"])
    with pytest.raises(SchemaError, match="a deadline cannot be combined with a calendar"):
        pipeline.resolve(fixed, tables[1], calendar=in_process.Calendar("Mon 09:00-10:00"))


@pytest.mark.slow  # many tables
def test_watches_that_contradict_the_rules_end_the_job(spark: SparkSession) -> None:
    with pytest.raises(
        PySparkException, match="'0' has several watches with role 'complete', which serves='oldest' excludes"
    ):
        pipeline.resolve(plain_rows("all"), STEP_EVENTS, serves="oldest").collect()
    with pytest.raises(PySparkException, match="'0' has condition 'then', which holds='at_deadline' excludes"):
        pipeline.resolve(plain_rows("then"), STEP_EVENTS, holds="at_deadline").collect()


def test_a_calendar_with_a_clock_that_changes_goes_to_the_workers(spark: SparkSession) -> None:
    calendar = in_process.Calendar("Sat 22:00-06:00", zone="Europe/Berlin", holidays=[date(2026, 3, 21)])
    table = plain_rows(*["all"] * 4).drop_columns(["timeout_ms", "start"])
    start = pa.array([1_774_000_000_000_000 + 86_400_000_000 * n for n in range(4)], TIME)
    table = table.append_column("start", start).append_column("timeout", pa.array(["7 h", "1 h", "0 s", "9 h"]))
    found = pipeline.resolve(table, STEP_EVENTS, calendar=calendar)
    assert rows_of(found) == rows_of(in_process.resolve(table, STEP_EVENTS, calendar=calendar))
