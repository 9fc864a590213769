"""One trace, three engines: brute force, the purgatory on a virtual clock, Spark batch. Equal outcomes, row by row."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant import tables as in_process
from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.tables import batch
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE, HotKey, HotKeys, Sample, cuts_of_keys
from abeyant.pipeline.resolver.tables.packing import KINDS, PROFILE
from abeyant.pipeline.resolver.tables.profile import _pack_ids, is_repeated, profile_ids
from abeyant.pipeline.resolver.tables.small import are_moderate, small_table_plan
from abeyant.pipeline.schemas import OPERATIONS, OUTCOMES, SchemaError
from abeyant.pipeline.spark.chunks import chunks
from abeyant.pipeline.spark.columns import check_table
from abeyant.pipeline.spark.plans import Size, estimated_size
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
from pipeline.small_cases import BROKEN, small_events, small_operations
from pipeline.trace_tables import (
    ARROW_EVENTS,
    ARROW_OPERATIONS,
    EPOCH,
    EPOCH_US,
    event_row,
    events_table,
    operation_row,
    operations_table,
    tables,
)
from seeds import share, with_slow

# Every key with two rows or more is hot, and is cut at each of them; many cuts then coincide.
ALL_HOT = Sample(fraction=1.0, piece=1)


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
    return some_traces(share(3000), seed=20261121)


def test_the_traces_hold_what_the_laws_speak_of() -> None:
    seen = variety(traces(), "inclusive")
    assert min(seen.values()) > share(100), seen


@pytest.mark.parametrize("deadline", ["inclusive", "exclusive"])
def test_o1_o2_o3_the_purgatory_equals_brute_force(deadline: Deadline) -> None:
    for trace in traces():
        assert by_purgatory(trace, deadline) == by_brute_force(trace, deadline), trace


@pytest.mark.parametrize(
    ("deadline", "sample"),
    [
        pytest.param("inclusive", ALL_HOT, marks=pytest.mark.slow),
        pytest.param("exclusive", DEFAULT_SAMPLE, marks=pytest.mark.slow),
        pytest.param("inclusive", None, marks=pytest.mark.slow),
        ("exclusive", None),
    ],
    ids=["inclusive, every key is cut", "exclusive, none is", "inclusive, small", "exclusive, small"],
)
def test_o1_to_o4_spark_equals_brute_force(spark: SparkSession, deadline: Deadline, sample: Sample | None) -> None:
    # Each key that is cut costs more than the other ways' whole traces.
    some = traces()[: share(800)] if sample is ALL_HOT else traces()
    operations, events = tables(spark, some)
    found = by_spark(operations.transform(pipeline.resolve, events, deadline=deadline, sample=sample))
    for number, trace in enumerate(some):
        assert found[f"t{number}"] == by_brute_force(trace, deadline), trace


# -- hot keys ------------------------------------------------------------------------------------------------------


def hot_traces() -> dict[str, Trace]:
    """One key with all the rows of its instance, in the shapes that are hard to cut or to reduce."""
    dice = random.Random(3)
    numbers = range(500)
    shapes = {
        "one value repeated": [Event("hot", dice.randrange(10**6), 5) for _ in numbers],
        "mostly one value": [Event("hot", dice.randrange(10**6), dice.choice([5, 5, n])) for n in numbers],
        "the greater the later": [Event("hot", n * 2000, n) for n in numbers],
        "the greater the earlier": [Event("hot", n * 2000, -n) for n in numbers],
        "at random": [Event("hot", dice.randrange(10**6), dice.randrange(1000)) for _ in numbers],
    }
    made = {}
    for shape, events in shapes.items():
        levels = [event.progress for event in events] + [5] * 150
        ops = [
            Op(f"op-{n}", dice.randrange(10**6), dice.randrange(100), (Watch("hot", dice.choice(levels)),), "all")
            for n in range(300)
        ]
        made[shape] = Trace(ops, events)
    return made


@cache
def hot_outcomes(shape: str) -> Outcomes:
    return by_brute_force(hot_traces()[shape], "inclusive")


@pytest.mark.slow
def test_cutting_hot_keys_changes_no_outcome_nor_does_a_sample_that_misses_them(spark: SparkSession) -> None:
    made = hot_traces()
    operations = operations_table(
        spark, [operation_row(op, shape) for shape, trace in made.items() for op in trace.operations]
    )
    events = events_table(spark, [event_row(event, shape) for shape, trace in made.items() for event in trace.events])
    cut = by_spark(pipeline.resolve(operations, events, unique_ids=True, sample=Sample(fraction=0.2, piece=10)))
    whole = by_spark(pipeline.resolve(operations, events, unique_ids=True, sample=Sample(fraction=0.001, piece=10)))
    for shape in made:
        assert cut[shape] == whole[shape] == hot_outcomes(shape), shape
    ends = Counter(outcome for shape in made for outcome, _ in hot_outcomes(shape).values())
    assert min(ends["completed"], ends["expired"]) > 100


@pytest.mark.slow  # the same again, otherwise packed
def test_shards_that_are_packed_together_change_no_outcome(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tables of moderate size are, here with a key that is cut, and so shuffled a second time."""
    shape = "mostly one value"
    trace = hot_traces()[shape]
    operations = operations_table(spark, [operation_row(op, shape) for op in trace.operations])
    events = events_table(spark, [event_row(event, shape) for event in trace.events])
    monkeypatch.setattr(batch, "small_table_plan", lambda *_: None)
    monkeypatch.setattr(batch, "DEFAULT_SAMPLE", Sample(fraction=0.2, piece=10))
    assert by_spark(pipeline.resolve(operations, events)) == {shape: hot_outcomes(shape)}


def test_the_pieces_of_a_hot_key_are_of_one_size() -> None:
    """Whatever the shape: a piece gets its share of events and operations, and a row of each chunk at most."""
    made = hot_traces()
    for shape, trace in made.items():
        required = [op.watches[0].required for op in trace.operations]
        hot = HotKeys([HotKey(7, 8, sorted([event.progress for event in trace.events] + required)[40::40])])
        rows = np.array([(7, 8, event.progress, event.at) for event in trace.events])
        sent = np.column_stack(hot.cut_events(*np.ascontiguousarray(rows.T)))
        assert len(sent) <= len(trace.events) + 20
        packed = Staircases(sent.ravel().data)
        places = np.full(len(trace.operations), 7)
        hot.cut_operations(places, np.full(len(places), 8), np.array(required))
        steps = np.frombuffer(packed.steps, np.int64)[::4]
        sizes = Counter(steps.tolist()) + Counter(places.tolist())
        assert max(sizes.values()) <= 85, f"{shape}: {sorted(sizes.values())}"
        assert len({place >> 54 for place in sizes}) > 10, f"{shape}: the pieces are on few shards"


def test_the_cuts_are_every_so_many_rows_of_a_hot_key() -> None:
    rows = [(7, 8, n) for n in range(500)] + [(7, 9, n) for n in range(100)] + [(-3, 1, 5)] * 101
    random.Random(1).shuffle(rows)
    assert cuts_of_keys(np.array(rows), 100, 100) == [-3, 1, 1, 5, 7, 8, 4, 100, 200, 300, 400]
    assert cuts_of_keys(np.array(rows), 101, 200) == [7, 8, 2, 200, 400]
    assert cuts_of_keys(np.array(rows), 500, 100) == []


# -- one query for all that is small -------------------------------------------------------------------------------


class Small(NamedTuple):
    """The answers for the small cases, each of which has an instance of its own."""

    outcomes: dict[str, Outcomes]
    rows: dict[str, Any]  # by op_id
    all_rows: list[Any]
    operations_aside: list[Any]
    events_aside: list[Any]


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> Small:
    operations, events = operations_table(spark, small_operations()), events_table(spark, small_events())
    outcomes = pipeline.resolve(operations, events).persist()
    aside = pipeline.rejected_operations(operations)
    assert aside.columns == [*OPERATIONS.fieldNames(), "reason"]
    answers = Small(
        by_spark(outcomes),
        {row.op_id: row for row in outcomes.collect()},
        outcomes.collect(),
        aside.collect(),
        pipeline.rejected_events(events).collect(),
    )
    outcomes.unpersist()
    return answers


def in_microseconds(row: dict[str, Any], name: str) -> dict[str, Any]:
    at = row[name]
    return row | {name: at and (at.replace(tzinfo=None) - EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1)}


def as_told(rows: Iterable[dict[str, Any]], name: str) -> list[str]:
    return sorted(json.dumps(in_microseconds(row, name), sort_keys=True) for row in rows)


def test_tables_without_spark_give_the_same_row_by_row(small: Small) -> None:
    """One definition of what is invalid and of which duplicate counts, whatever looks."""
    operations = pa.Table.from_pylist(small_operations(), ARROW_OPERATIONS)
    events = pa.Table.from_pylist(small_events(), ARROW_EVENTS)
    without = in_process.resolve(operations, events).to_pylist()
    assert as_told(without, "at") == as_told((row.asDict() for row in small.all_rows), "at")
    aside = (row.asDict(recursive=True) for row in small.operations_aside)
    assert as_told(in_process.rejected_operations(operations).to_pylist(), "start") == as_told(aside, "start")
    events_aside = (row.asDict() for row in small.events_aside)
    assert as_told(in_process.rejected_events(events).to_pylist(), "at") == as_told(events_aside, "at")


def test_an_operation_whose_key_never_occurs_expires(small: Small) -> None:
    assert small.outcomes["alone"] == {"alone": ("expired", 7005)}


def test_keys_belong_to_their_instance(small: Small) -> None:
    assert [small.outcomes[instance]["op"] for instance in ("a", "b", "ab")] == [
        ("completed", 3),
        ("expired", 10_000),
        ("expired", 10_000),
    ]


def test_waits_are_in_milliseconds_and_kinds_are_kept(small: Small) -> None:
    at = (EPOCH + timedelta(microseconds=1500)).replace(tzinfo=None)
    assert small.rows["waits"] == ("waits", "waits", None, "completed", at, 1.25)
    assert small.rows["alone"].kind == "TEST"


def test_o4_what_cannot_be_resolved_is_rejected_with_its_reason(small: Small) -> None:
    assert small.outcomes["broken"] == {"good": ("completed", 3)}
    reasons = {row.kind: row.reason for row in small.operations_aside if row.instance in ("broken", None)}
    assert reasons == {str(BROKEN[reason].get("op_id", reason)): reason for reason in BROKEN} | {
        "null watches": "no watches",
        "huge": "the deadline is beyond the last timestamp",
    }


def test_o4_of_one_id_the_first_counts_and_the_rest_is_rejected(small: Small) -> None:
    assert small.outcomes["other"] == {"twice": ("expired", 10_004)}
    assert small.outcomes["twice"] == {"twice": ("expired", 10_002)} | {f"{n}": ("expired", 10_004) for n in range(50)}
    aside = [row for row in small.operations_aside if row.instance == "twice"]
    began = EPOCH.replace(tzinfo=None)
    assert sorted((row.op_id, (row.start - began) // timedelta(microseconds=1), row.reason) for row in aside) == [
        ("twice", 1, "timeout_ms is negative"),
        ("twice", 4, "duplicate op_id"),
        ("twice", 4, "duplicate op_id"),
    ]


def test_o4_every_operation_is_resolved_or_rejected(small: Small) -> None:
    assert len(small_operations()) == sum(map(len, small.outcomes.values())) + len(small.operations_aside)


def test_events_without_a_value_change_nothing_and_can_be_seen(small: Small) -> None:
    assert sorted(row.reason for row in small.events_aside) == ["no at", "no instance", "no key", "no progress"]


# -- the plan ------------------------------------------------------------------------------------------------------


def test_nothing_in_nothing_out(spark: SparkSession) -> None:
    assert by_spark(pipeline.resolve(operations_table(spark, []), events_table(spark, []))) == {}


def test_a_wrong_table_is_refused_by_the_column_what_it_is_and_should_be(spark: SparkSession) -> None:
    operations, events = operations_table(spark, []), events_table(spark, [])
    with pytest.raises(SchemaError, match=r"operations: no column 'start', expected timestamp \(columns: instance, "):
        pipeline.resolve(operations.drop("start"), events)
    text = operations.withColumn("start", F.col("start").cast("string"))
    with pytest.raises(SchemaError, match=r"'start' is string, expected timestamp; to_timestamp\(start\) makes"):
        pipeline.resolve(text, events)
    with pytest.raises(SchemaError, match=r"events: column 'progress' is string, expected bigint$"):
        pipeline.resolve(operations, events.withColumn("progress", F.col("progress").cast("string")))
    with pytest.raises(ValueError, match="deadline must be 'inclusive' or 'exclusive', not 'open'"):
        pipeline.resolve(operations, events, deadline="open")  # type: ignore[arg-type]


def test_nothing_runs_before_an_action(spark: SparkSession) -> None:
    broken = events_table(spark, [event_row(Event("k", 1, 1))]).withColumn(
        "progress", F.raise_error("this was run").cast("long")
    )
    pipeline.resolve(operations_table(spark, []), broken)


def executed_plan(outcomes: DataFrame) -> str:
    """What Spark ran, or will run."""
    plan = outcomes._jdf.queryExecution().executedPlan().toString()
    return str(plan).partition("\n+- == Initial Plan")[0]  # those of subqueries stand further to the right


def test_both_ways_and_the_profile_read_one_shuffle(spark: SparkSession) -> None:
    """Rows are packed, sorted and shuffled once for all of them, and hot keys are cut once for both ways."""
    plan = executed_plan(pipeline.resolve(*tables(spark, traces()[:50]), sample=DEFAULT_SAMPLE))
    assert plan.count("MapInArrow partial(numbers#") == 2, "inputs are packed more than once"
    assert plan.count("ReusedExchange [order") == 3


@pytest.fixture
def adaptive(spark: SparkSession) -> Iterator[None]:
    """Let Spark plan again once it knows sizes: its default, which a brief session is without."""
    before = str(spark.conf.get("spark.sql.adaptive.enabled"))
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield
    spark.conf.set("spark.sql.adaptive.enabled", before)


@pytest.mark.slow
@pytest.mark.usefixtures("adaptive")
def test_no_second_step_where_no_operation_has_several_watches(spark: SparkSession) -> None:
    single = Trace([Op("op", 0, 10, (Watch("k", 1),), "all")], [Event("k", 3, 1)])
    several = single._replace(operations=[Op("op", 0, 10, (Watch("k", 1), Watch("k", 0)), "all")])
    for trace, skipped in ((single, True), (several, False)):
        outcomes = pipeline.resolve(*tables(spark, [trace]), sample=DEFAULT_SAMPLE)
        assert [(row.op_id, row.outcome) for row in outcomes.collect()] == [("op", "completed")]
        assert ("min_by(" not in executed_plan(outcomes)) == skipped


@pytest.mark.slow  # many plans
@pytest.mark.parametrize(
    ("plan", "sample"),
    [
        ("adaptive", DEFAULT_SAMPLE),
        ("fixed", DEFAULT_SAMPLE),
        ("fixed", None),
    ],
)
def test_each_table_is_read_once(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path, plan: str, sample: Sample | None
) -> None:
    """And the conditions before the job."""
    if plan == "adaptive":
        request.getfixturevalue("adaptive")

    def reading(table: DataFrame, name: str) -> DataFrame:
        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches
            tempfile.mkstemp(prefix=name, dir=tmp_path)

        return table.mapInArrow(read, table.schema)

    operations, events = tables(spark, traces()[:50])
    outcomes = pipeline.resolve(reading(operations, "operations"), reading(events, "events"), sample=sample)
    assert len(outcomes.collect()) == operations.count()
    tasks = Counter(path.name[:6] for path in tmp_path.iterdir())
    assert tasks == {"operat": 3 + 3, "events": 3}


@pytest.mark.parametrize("plan", with_slow(["adaptive", "fixed"], ["fixed"]))
def test_a_session_with_spark_s_200_partitions_runs_few_tasks_for_little_data(
    spark: SparkSession, request: pytest.FixtureRequest, plan: str
) -> None:
    if plan == "adaptive":
        request.getfixturevalue("adaptive")
    operations, events = tables(spark, traces()[:50])
    expected = by_spark(pipeline.resolve(operations.coalesce(1), events.coalesce(1)))
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    spark.sparkContext.setJobGroup(f"few, {plan}", "")
    try:
        assert by_spark(pipeline.resolve(operations.coalesce(1), events.coalesce(1))) == expected
        tracker = spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(f"few, {plan}")]
        stages = {stage for job in jobs if job for stage in job.stageIds}
        tasks = [stage.numCompletedTasks for stage in map(tracker.getStageInfo, stages) if stage]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
        spark.sparkContext.setJobGroup("others", "")
    # The inputs' own three partitions each, what is by shard, and what is by id.
    assert len(jobs) <= 5
    assert sum(tasks) <= 12


@pytest.mark.slow
def test_each_table_of_files_is_at_most_eleven_times_in_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    """Each time, the driver plans it anew: for the three ways once, and eight times for the profile."""
    both = tables(spark, traces()[:50])
    for table, name in zip(both, ("operations", "events"), strict=True):
        table.write.parquet(str(tmp_path / name))
    read = [spark.read.parquet(str(tmp_path / name)).where("length(instance) > 0") for name in ("operations", "events")]
    outcomes = pipeline.resolve(read[0], read[1], sample=DEFAULT_SAMPLE)
    plan = str(outcomes._jdf.queryExecution().optimizedPlan())
    scans = [line for line in plan.splitlines() if "Relation [" in line]
    assert [sum(column in line for line in scans) for column in ("op_id#", "progress#")] == [11, 11]
    assert by_spark(outcomes) == by_spark(pipeline.resolve(*both))


def test_rows_that_are_in_the_plan_themselves_are_there_once(spark: SparkSession) -> None:
    operations = spark.createDataFrame(pa.Table.from_pylist(small_operations(), ARROW_OPERATIONS))
    events = spark.createDataFrame(pa.Table.from_pylist(small_events(), ARROW_EVENTS))
    outcomes, aside = pipeline.resolve(operations, events), pipeline.rejected_operations(operations)
    plans = [str(table._jdf.queryExecution().optimizedPlan()) for table in (outcomes, aside)]
    assert [plan.count("LocalRelation") for plan in plans] == [2, 1]
    assert len(outcomes.collect()) == operations.count() - aside.count()


def test_rows_that_are_in_the_plan_themselves_are_small_however_many(spark: SparkSession) -> None:
    """The driver could not hold them several times."""
    rows, file = Size(1 << 40, in_plan=True), Size(1 << 20, in_plan=False)
    assert small_table_plan(spark, [rows, rows]) is not None
    assert small_table_plan(spark, [rows, file]) is None
    assert small_table_plan(spark, [file, file]) is not None
    assert small_table_plan(spark, [file, None]) is None
    # Of these two a quarter of the shards is enough, unless there are many partitions to fill.
    assert [are_moderate([file, file], count) for count in (4, 64, 65)] == [True, True, False]
    assert not any(are_moderate(sizes, 4) for sizes in ([file, None], [file, Size(2**36, False)], []))
    table = spark.createDataFrame(pa.table({"n": [1, 2]}))
    sizes = [estimated_size(some) for some in (table, table.union(table), spark.range(2))]
    assert [size and size.in_plan for size in sizes] == [True, False, False]


@pytest.mark.slow
def test_rows_of_one_id_are_combined_where_no_operation_has_several_watches(spark: SparkSession) -> None:
    operations = [operation_row(Op(name, 0, 10, (Watch("k", 1),), "all")) for name in ("twice", "once", "twice")]
    happened = events_table(spark, [event_row(Event("k", 3, 1))])
    outcomes = pipeline.resolve(operations_table(spark, operations), happened, sample=DEFAULT_SAMPLE)
    assert sorted((row.op_id, row.outcome) for row in outcomes.collect()) == [
        ("once", "completed"),
        ("twice", "completed"),
    ]


def rivals(*pairs: tuple[str, tuple[Watch, ...]]) -> list[dict[str, Any]]:
    """Rows of one id that differ in condition and watches only."""
    return [operation_row(Op("op", 0, 10, watches, condition)) for condition, watches in pairs]


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        # A number is no text.
        pytest.param(("all", (Watch("k", 9),)), ("all", (Watch("k", 10),)), "completed", marks=pytest.mark.slow),
        pytest.param(("all", (Watch("a", 10),)), ("all", (Watch("b", 9),)), "expired", marks=pytest.mark.slow),
        pytest.param(("all", (Watch("k", 10),)), ("any", (Watch("k", 9),)), "expired", marks=pytest.mark.slow),
        pytest.param(
            ("any", (Watch("k", 10),)), ("any", (Watch("k", 10), Watch("k", 9))), "expired", marks=pytest.mark.slow
        ),
    ],
    ids=["required", "key", "condition", "more"],
)
def test_o4_of_rows_that_begin_and_end_alike_the_least_counts(
    spark: SparkSession, first: tuple[str, tuple[Watch, ...]], second: tuple[str, tuple[Watch, ...]], outcome: str
) -> None:
    """By the condition, then by their watches one by one."""
    happened = events_table(spark, [event_row(Event(key, 5, 9)) for key in "abk"])
    for rows in (rivals(first, second), rivals(second, first)):
        operations = operations_table(spark, rows)
        for sample in (None, DEFAULT_SAMPLE):
            found = pipeline.resolve(operations, happened, sample=sample).collect()
            assert [row.outcome for row in found] == [outcome]
        assert in_process.resolve(operations.toArrow(), happened.toArrow())["outcome"].to_pylist() == [outcome]


@pytest.mark.slow
def test_names_of_columns_follow_the_session(spark: SparkSession) -> None:
    row = operation_row(Op("op", 0, 10, (Watch("k", 1),), "all"))
    happened = events_table(spark, [event_row(Event("k", 3, 1))]).withColumnRenamed("at", "AT")
    kind = "array<struct<Key:string,REQUIRED:bigint>>"
    operations = operations_table(spark, [row, row]).withColumnRenamed("op_id", "Op_Id")
    operations = operations.withColumn("WATCHES", F.col("watches").cast(kind))
    for sample in (None, DEFAULT_SAMPLE):
        outcomes = pipeline.resolve(operations, happened, sample=sample)
        assert outcomes.columns == OUTCOMES.fieldNames()
        assert [(row.op_id, row.outcome) for row in outcomes.collect()] == [("op", "completed")]
    aside = pipeline.rejected_operations(operations)
    assert (aside.columns, aside.count()) == ([*operations.columns, "reason"], 1)
    with pytest.raises(SchemaError, match=r"events: 2 columns 'at' \(AT, at\): rename all but one, or tell them apart"):
        pipeline.resolve(operations, happened.select("*", F.lit(1).alias("at")))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaError, match="operations: no column 'op_id', expected string"):
            pipeline.resolve(operations, happened)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


# -- what runs in the workers, without Spark -----------------------------------------------------------------------


def test_a_chunk_is_bounded_in_rows_and_in_bytes() -> None:
    narrow = [pa.record_batch({"number": list(range(1000))})] * 600
    assert [chunk.num_rows for chunk in chunks(narrow)] == [1000 * 263, 1000 * 263, 1000 * 74]
    wide = [pa.record_batch({"text": ["x" * (1 << 20)] * 40})] * 3
    assert [chunk.num_rows for chunk in chunks(wide)] == [80, 40]


@pytest.mark.parametrize("repeated", with_slow([0, 1, 300], [300]))
def test_ids_that_are_there_twice_are_found(spark: SparkSession, repeated: int) -> None:
    """All of them and no other, over chunks and tasks, each group once."""
    op_id = f"concat('op-', id % {3000 - repeated}) AS op_id"
    rows = spark.range(0, 3000, 1, 4).selectExpr("'i' AS instance", op_id)
    told = rows.withColumn("seen", profile_ids(rows).select(F.struct("*")).scalar())
    found = [row.op_id for row in told.where(is_repeated("seen")).collect()]
    assert Counter(found) == {f"op-{n}": 2 for n in range(repeated)}


def test_rows_without_an_id_are_no_duplicates_of_one_another(spark: SparkSession) -> None:
    """A log's other rows have no op_id: were they looked at, all of them would meet in one task."""
    rows = spark.range(3000).selectExpr(
        "if(id % 3 = 0, NULL, 'i') AS instance", "if(id % 2 = 0, NULL, concat('op-', id)) AS op_id",
    )  # fmt: skip
    assert profile_ids(rows).select("cuts", "shards", "repeated").first() == Row(cuts=[], shards=[], repeated=None)


def test_one_id_a_million_times_is_found_by_few_hashes() -> None:
    same = pa.record_batch([pa.array(np.full(1 << 18, 1 << 62))], ["id"])
    packed = [row for batch in _pack_ids([same] * 4) for row in batch.to_pylist()]
    assert packed == [{"order": 64 * KINDS + PROFILE, "packed": struct.pack("<qq", 1 << 62, 1 << 62)}] * 4


def test_a_sample_that_is_none_is_refused() -> None:
    for fraction in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=f"fraction must be from 0 to 1, not {fraction}"):
            Sample(fraction, 1)
    with pytest.raises(ValueError, match="piece must be at least 1 row, not 0"):
        Sample(0.5, 0)
