"""One trace, three engines: brute force, the purgatory on a virtual clock, Spark batch. Equal outcomes, row by row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyance import pipeline
from abeyance.pipeline.resolver import kernel
from abeyance.pipeline.resolver.places import DEFAULT_HEAT, Heat
from abeyance.pipeline.schemas import EVENTS, OPERATIONS, OUTCOMES, SchemaError, check_table
from pipeline.resolve_traces import (
    Deadline,
    Event,
    Op,
    Outcomes,
    Trace,
    Watch,
    by_brute_force,
    by_purgatory,
    some_traces,
    variety,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_US = int(EPOCH.timestamp()) * 1_000_000

# Every key with two rows or more is hot, and is cut; most cuts then coincide.
ALL_HOT = Heat(fraction=1.0, least=2)

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64())]))
ARROW_OPERATIONS = pa.schema(
    [
        ("instance", pa.string()),
        ("op_id", pa.string()),
        ("kind", pa.string()),
        ("start", TIME),
        ("timeout_ms", pa.int64()),
        ("watches", WATCHES),
        ("condition", pa.string()),
    ]
)
ARROW_EVENTS = pa.schema([("instance", pa.string()), ("key", pa.string()), ("at", TIME), ("progress", pa.int64())])


def operation_row(op: Op, instance: str = "i") -> dict[str, Any]:
    return {
        "instance": instance,
        "op_id": op.op_id,
        "kind": "TEST",
        "start": EPOCH_US + op.start,
        "timeout_ms": op.timeout_ms,
        "watches": [watch._asdict() for watch in op.watches],
        "condition": op.condition,
    }


def event_row(event: Event, instance: str = "i") -> dict[str, Any]:
    return {"instance": instance, "key": event.key, "at": EPOCH_US + event.at, "progress": event.progress}


def table(spark: SparkSession, rows: Sequence[dict[str, Any]], schema: pa.Schema, parts: int = 3) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema)).repartition(parts)


def operations_table(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> DataFrame:
    return table(spark, rows, ARROW_OPERATIONS)


def events_table(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> DataFrame:
    return table(spark, rows, ARROW_EVENTS)


def tables(spark: SparkSession, traces: Sequence[Trace]) -> tuple[DataFrame, DataFrame]:
    """All traces in one pair of tables, each an instance of its own; the events of all are mixed."""
    operations = [operation_row(op, f"t{n}") for n, trace in enumerate(traces) for op in trace.operations]
    events = [event_row(event, f"t{n}") for n, trace in enumerate(traces) for event in trace.events]
    random.Random(5).shuffle(events)
    return operations_table(spark, operations), events_table(spark, events)


def by_spark(outcomes: DataFrame) -> dict[str, Outcomes]:
    """What Spark found, by instance; and each row once (O4), with a wait that agrees with its time."""
    check_table(outcomes, OUTCOMES, "outcomes")
    assert outcomes.columns == OUTCOMES.fieldNames()
    found: dict[str, Outcomes] = {}
    columns = outcomes.withColumn("at", F.unix_micros("at")).toPandas().to_dict("list")
    for instance, op_id, outcome, at in zip(
        columns["instance"], columns["op_id"], columns["outcome"], columns["at"], strict=True
    ):
        ends = found.setdefault(instance, {})
        assert op_id not in ends, f"O4: {instance} {op_id} has two outcomes"
        ends[op_id] = (outcome, at - EPOCH_US)
    return found


@cache
def traces() -> list[Trace]:
    return some_traces(3000, seed=20261121)


def test_the_traces_hold_what_the_laws_speak_of() -> None:
    seen = variety(traces(), "inclusive")
    assert min(seen.values()) > 100, seen


@pytest.mark.parametrize("deadline", ["inclusive", "exclusive"])
def test_o1_o2_o3_the_purgatory_equals_brute_force(deadline: Deadline) -> None:
    for trace in traces():
        assert by_purgatory(trace, deadline) == by_brute_force(trace, deadline), trace


@pytest.mark.parametrize("heat", [DEFAULT_HEAT, ALL_HOT], ids=["no key is cut", "every key is cut"])
@pytest.mark.parametrize("deadline", ["inclusive", "exclusive"])
def test_o1_to_o4_spark_equals_brute_force(spark: SparkSession, deadline: Deadline, heat: Heat) -> None:
    operations, events = tables(spark, traces())
    found = by_spark(operations.transform(pipeline.resolve, events, deadline=deadline, heat=heat))
    for number, trace in enumerate(traces()):
        assert found[f"t{number}"] == by_brute_force(trace, deadline), trace


def test_a_hot_key_is_spread_over_tasks_and_its_outcomes_stay(spark: SparkSession) -> None:
    """One key with all the rows, most of which require the very same progress."""
    dice = random.Random(3)
    events = [Event("hot", dice.randrange(10**6), dice.choice([5, 5, 5, dice.randrange(1000)])) for _ in range(3000)]
    ops = [
        Op(
            f"op-{n}",
            dice.randrange(10**6),
            dice.randrange(100),
            (Watch("hot", dice.choice([5, 5, dice.randrange(1000)])),),
            "all",
        )
        for n in range(2000)
    ]
    operations = operations_table(spark, [operation_row(op) for op in ops])
    happened = events_table(spark, [event_row(event) for event in events])
    heat = Heat(fraction=1.0, least=100)
    assert by_spark(pipeline.resolve(operations, happened, heat=heat)) == {
        "i": by_brute_force(Trace(ops, events), "inclusive")
    }

    from abeyance.pipeline.resolver.batch import _watches
    from abeyance.pipeline.resolver.places import HotKeys

    hot = HotKeys(operations, happened, heat)
    most = {
        "operations": hot.place_operations(_watches(operations)),
        "events": hot.place_events(happened.withColumn("at_us", F.unix_micros("at"))),
    }
    for what, placed in most.items():
        sizes = [row["count"] for row in placed.groupBy("place").count().collect()]
        assert len(sizes) > 10
        assert max(sizes) < sum(sizes) / 5, f"{what}: {sorted(sizes)}"
    # An event of just the progress that most operations require is told to the pieces, not sent.
    assert most["events"].count() < 2000


def test_an_operation_whose_key_never_occurs_expires(spark: SparkSession) -> None:
    operations = operations_table(spark, [operation_row(Op("alone", 5, 7, (Watch("nowhere", 0),), "all"))])
    nothing = events_table(spark, [])
    assert by_spark(pipeline.resolve(operations, nothing)) == {"i": {"alone": ("expired", 7005)}}


def test_nothing_in_nothing_out(spark: SparkSession) -> None:
    assert by_spark(pipeline.resolve(operations_table(spark, []), events_table(spark, []))) == {}


def test_keys_belong_to_their_instance(spark: SparkSession) -> None:
    op = Op("op", 0, 10, (Watch("k", 1),), "all")
    operations = operations_table(spark, [operation_row(op, "a"), operation_row(op, "b"), operation_row(op, "ab")])
    events = events_table(spark, [event_row(Event("k", 3, 1), "a"), event_row(Event("bk", 4, 1), "a")])
    found = by_spark(pipeline.resolve(operations, events))
    assert found == {"a": {"op": ("completed", 3)}, "b": {"op": ("expired", 10_000)}, "ab": {"op": ("expired", 10_000)}}


def test_waits_are_in_milliseconds_and_kinds_are_kept(spark: SparkSession) -> None:
    row = operation_row(Op("op", 250, 10, (Watch("k", 1),), "all")) | {"kind": None}
    outcome = pipeline.resolve(operations_table(spark, [row]), events_table(spark, [event_row(Event("k", 1500, 1))]))
    assert outcome.collect() == [
        ("i", "op", None, "completed", (EPOCH + timedelta(microseconds=1500)).replace(tzinfo=None), 1.25)
    ]


LAST = 9_223_372_036_854_775_807
BROKEN: dict[str, dict[str, Any]] = {
    "no instance": {"instance": None},
    "no op_id": {"op_id": None},
    "no start": {"start": None},
    "no timeout_ms": {"timeout_ms": None},
    "timeout_ms is negative": {"timeout_ms": -1},
    "the deadline is beyond the last timestamp": {"timeout_ms": LAST // 1000},
    "no watches": {"watches": []},
    "a watch has no key": {"watches": [{"key": "k", "required": 1}, {"key": None, "required": 1}]},
    "a watch has no required": {"watches": [{"key": "k", "required": None}, {"key": "k", "required": 1}]},
    "condition is neither 'all' nor 'any'": {"condition": "some"},
}


def test_o4_what_cannot_be_resolved_is_set_aside_with_its_reason(spark: SparkSession) -> None:
    good = operation_row(Op("good", 0, 10, (Watch("k", 1),), None))
    rows = [good] + [good | {"op_id": reason} | change for reason, change in BROKEN.items()]
    rows += [good | {"op_id": "null watches", "watches": None}, good | {"op_id": "huge", "timeout_ms": LAST}]
    operations = operations_table(spark, [row | {"kind": str(row["op_id"])} for row in rows])
    aside = pipeline.invalid_operations(operations)
    assert aside.columns == [*OPERATIONS.fieldNames(), "reason"]
    reasons = {row.kind: row.reason for row in aside.collect()}
    assert reasons == {str(BROKEN[reason].get("op_id", reason)): reason for reason in BROKEN} | {
        "null watches": "no watches",
        "huge": "the deadline is beyond the last timestamp",
    }
    outcomes = pipeline.resolve(operations, events_table(spark, [event_row(Event("k", 3, 1))]))
    assert by_spark(outcomes) == {"i": {"good": ("completed", 3)}}


def test_o4_of_one_id_the_first_counts_and_the_rest_is_set_aside(spark: SparkSession) -> None:
    op = Op("twice", 4, 10, (Watch("k", 1),), "all")
    rows = [operation_row(op), operation_row(op), operation_row(op._replace(start=2)), operation_row(op, "other")]
    rows.append(operation_row(op._replace(start=1, timeout_ms=-1)))  # invalid: it takes nobody's place
    operations = operations_table(spark, rows + [operation_row(op._replace(op_id=f"{n}")) for n in range(50)])
    found = by_spark(pipeline.resolve(operations, events_table(spark, [])))
    assert found["other"] == {"twice": ("expired", 10_004)}
    assert found["i"] == {"twice": ("expired", 10_002)} | {f"{n}": ("expired", 10_004) for n in range(50)}
    aside = pipeline.invalid_operations(operations).select("op_id", F.unix_micros("start") - EPOCH_US, "reason")
    assert sorted(map(tuple, aside.collect())) == [
        ("twice", 1, "timeout_ms is negative"),
        ("twice", 4, "duplicate op_id"),
        ("twice", 4, "duplicate op_id"),
    ]


def test_events_without_a_value_change_nothing_and_can_be_seen(spark: SparkSession) -> None:
    good = event_row(Event("k", 3, 1))
    rows = [good] + [good | {name: None} for name in EVENTS.fieldNames()]
    events = events_table(spark, rows)
    assert sorted(row.reason for row in pipeline.invalid_events(events).collect()) == [
        "no at", "no instance", "no key", "no progress",
    ]  # fmt: skip
    operations = operations_table(spark, [operation_row(Op("op", 0, 10, (Watch("k", 1),), "all"))])
    assert by_spark(pipeline.resolve(operations, events)) == {"i": {"op": ("completed", 3)}}


def test_a_wrong_table_is_refused_by_the_column_what_it_is_and_should_be(spark: SparkSession) -> None:
    operations, events = operations_table(spark, []), events_table(spark, [])
    with pytest.raises(SchemaError, match=r"operations: no column 'start', expected timestamp \(columns: instance, "):
        pipeline.resolve(operations.drop("start"), events)
    with pytest.raises(SchemaError, match="events: column 'progress' is string, expected bigint"):
        pipeline.resolve(operations, events.withColumn("progress", F.col("progress").cast("string")))
    with pytest.raises(ValueError, match="deadline must be 'inclusive' or 'exclusive', not 'open'"):
        pipeline.resolve(operations, events, deadline="open")  # type: ignore[arg-type]


def test_nothing_runs_before_an_action(spark: SparkSession) -> None:
    broken = events_table(spark, [event_row(Event("k", 1, 1))]).withColumn(
        "progress", F.raise_error("this was run").cast("long")
    )
    pipeline.resolve(operations_table(spark, []), broken)


def test_both_steps_read_one_shuffle(spark: SparkSession) -> None:
    """Operations with several watches take a second step; the events are packed, sorted and shuffled once for both."""
    operations, events = tables(spark, traces()[:50])
    plan = pipeline.resolve(operations, events)._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ReusedExchange") >= 1
    assert plan.count("REPARTITION_BY_NUM") - plan.count("ReusedExchange") <= 4


def test_packed_events_keep_every_row_and_only_their_shard() -> None:
    """The map side: what goes in comes out, by shard, whatever the batches were."""
    dice = random.Random(1)
    rows = [(dice.randrange(1 << 62), dice.randrange(-9, 9), dice.randrange(9), dice.randrange(9)) for _ in range(5000)]
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(column) for column in zip(*rows[n : n + 700], strict=True)], ["a", "b", "c", "d"]
        )
        for n in range(0, 5000, 700)
    ]
    unpacked = []
    for batch in kernel.pack_events(batches):
        for order, packed in zip(batch["order"].to_pylist(), batch["events"].to_pylist(), strict=True):
            values = memoryview(packed).cast("q")
            some = [tuple(values[n : n + 4]) for n in range(0, len(values), 4)]
            assert {row[0] % kernel.SHARDS for row in some} == {order // 2}
            unpacked += some
    assert sorted(unpacked) == sorted(rows)
