"""Replay on Spark: the laws by brute force, the wheel's work by the engine called by hand, purges by a dumb model."""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.errors import AbeyantError
from abeyant.kernels.replay import ReplayStats
from abeyant.kernels.replay import replay as engine_replay
from abeyant.pipeline.replayer.purges import purges
from abeyant.pipeline.schemas import OBSERVED, REPLAYED, REPLAYED_PENDING, SchemaError
from abeyant.pipeline.spark.columns import check_table
from pipeline.long_known import NEVER, Known, ends, traces, with_timeout
from pipeline.resolve_traces import MS, Deadline, Op, Trace, Watch, by_brute_force
from pipeline.trace_tables import EPOCH_US, operation_row, operations_table
from seeds import with_slow

TIMEOUTS = (None, 0, 3, 50)
GRID = pipeline.grid(tick_ms=[0.001, 1.5], wheel_size=[2, 20], timeout_ms=TIMEOUTS)
PURGED = pipeline.Configuration(timeout_ms=3, purge_interval=10**6)


def by_engine(number: int, configuration: pipeline.Configuration, deadline: Deadline) -> ReplayStats:
    """The engine, by hand, at the true time: where buckets begin hangs on it."""
    operations = with_timeout(traces()[number], configuration.timeout_ms).operations
    came = ends(number)
    columns = (
        [EPOCH_US + op.start for op in operations],
        [op.timeout_ms * MS for op in operations],
        [min(EPOCH_US + came[op.op_id], NEVER) for op in operations],
    )
    arrays = [array("q", column) for column in columns]
    tick, size = configuration.tick_us, configuration.wheel_size
    return engine_replay(*arrays, tick=tick, wheel_size=size, deadline=deadline).stats


def rows_of(replayed: DataFrame) -> dict[tuple[str, pipeline.Configuration], dict[str, Any]]:
    check_table(replayed, REPLAYED, "replayed")
    assert replayed.columns == REPLAYED.fieldNames()
    first_last = {name: F.unix_micros(name) for name in ("first", "last")}
    found = {}
    for row in replayed.withColumns(first_last).toArrow().to_pylist():
        settings = ("tick_ms", "wheel_size", "timeout_ms", "purge_interval")
        found[row["instance"], pipeline.Configuration(*(row[name] for name in settings))] = row
    return found


@pytest.mark.parametrize("deadline", with_slow(["inclusive", "exclusive"], ["exclusive"]))
def test_o1_to_o3_each_instance_and_configuration_as_by_brute_force_and_by_the_engine(
    known: Known, deadline: Deadline
) -> None:
    """Conditions come true by the events, and by outcomes of operations that were watched for long."""
    settings = [*GRID, PURGED] if deadline == "inclusive" else GRID
    came = known.events if deadline == "inclusive" else known.outcomes
    found = rows_of(pipeline.replay(known.operations, came, settings, deadline=deadline))
    assert len(found) == len(traces()) * len(settings)
    for number, trace in enumerate(traces()):
        for configuration in GRID:
            row = found[f"t{number}", configuration]
            outcomes = by_brute_force(with_timeout(trace, configuration.timeout_ms), deadline)
            completed = sum(outcome == "completed" for outcome, _ in outcomes.values())
            assert (row["completed"], row["expired"]) == (completed, len(outcomes) - completed)
            assert (row["operations"], row["left_out"], row["unknown"]) == (len(outcomes), 0, 0)
            stats = by_engine(number, configuration, deadline)
            expired = stats.expired or None
            assert (
                row
                | {
                    "completed_at_start": stats.completed_at_start,
                    "overtaken": stats.overtaken if deadline == "inclusive" else None,
                    "first": stats.first,
                    "last": stats.last,
                    "timers": stats.started,
                    "pending_most": stats.max_pending,
                    "pending_mean": stats.pending_time / max(stats.last - stats.first, 1),
                    "lateness_mean_ms": expired and stats.lateness_sum / expired / 1000,
                    "lateness_most_ms": expired and stats.lateness_max / 1000,
                    "cascades": stats.cascaded,
                    "levels": stats.levels,
                    "wakeups": stats.wakeups,
                    "bucket_operations": stats.bucket_operations,
                }
                == row
            ), (trace, configuration)
    assert {row["cascades"] > 0 for row in found.values()} == {False, True}
    assert {row["unknown"] for row in found.values()} == {0}


@pytest.mark.slow
def test_what_nobody_watched_for_so_long_is_unknown(known: Known) -> None:
    """A log that knows of each operation what became of it under its own time-out."""
    long = rows_of(pipeline.replay(known.operations, known.outcomes, GRID))
    found = rows_of(pipeline.replay(known.log, None, GRID))
    for place, row in found.items():
        exact = long[place]
        assert row["completed"] <= exact["completed"] <= row["completed"] + row["unknown"]
        if place[1].timeout_ms in (None, 0):
            assert row == exact
    assert sum(row["unknown"] for row in found.values()) > 100


def changes(trace: Trace, timeout_ms: int | None) -> list[tuple[int, int]]:
    """How many are pending from when on: one after the other."""
    trace = with_timeout(trace, timeout_ms)
    change: dict[int, int] = defaultdict(int)
    outcomes = by_brute_force(trace, "inclusive")
    for op in trace.operations:
        change[op.start] += 1
        change[outcomes[op.op_id][1]] -= 1
    series, pending = [], 0
    for at in sorted(change):
        pending += change[at]
        if change[at]:
            series.append((at, pending))
    return series


@pytest.mark.slow  # many cases
def test_pending_over_time_is_that_of_brute_force_and_keeps_its_peaks_when_thinned(known: Known) -> None:
    replayed = pipeline.replay_pending(known.operations, known.outcomes, GRID, points=None)
    check_table(replayed, REPLAYED_PENDING, "replayed")
    found: dict[tuple[str, int | None], list[tuple[int, int]]] = defaultdict(list)
    for row in replayed.withColumn("at", F.unix_micros("at") - EPOCH_US).toArrow().to_pylist():
        found[row["instance"], row["timeout_ms"]].append((row["at"], row["pending"]))
    expected = {(f"t{n}", timeout): changes(trace, timeout) for n, trace in enumerate(traces()) for timeout in TIMEOUTS}
    assert {place: sorted(series) for place, series in found.items()} == {k: v for k, v in expected.items() if v}
    thinned: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    for row in pipeline.replay_pending(known.operations, known.outcomes, GRID, points=3).toArrow().to_pylist():
        thinned[row["instance"], row["timeout_ms"]].append(row["pending"])
    assert max(map(len, found.values())) > 3
    assert max(map(len, thinned.values())) == 3
    for place, series in found.items():
        assert max(thinned[place]) == max(pending for _, pending in series)


def watched_by_hand(operations: list[Op], ends: dict[str, int]) -> int:
    """The most entries on watch lists when nothing is ever purged: a check of a key takes the ended off its list.

    A key that an operation names twice has it twice, as in Kafka.
    """
    came = [ends[op.op_id] for op in operations]
    began = min(op.start for op in operations)
    happenings = sorted(
        [(op.start, 1, n) for n, op in enumerate(operations)]
        + [(came[n], 0, n) for n, op in enumerate(operations) if op.start < came[n] <= op.deadline]
        + [(op.deadline, 2, n) for n, op in enumerate(operations)]
    )
    lists: dict[str, list[int]] = defaultdict(list)
    ended: set[int] = set()
    most = 0
    for at, what, n in happenings:
        keys = [watch.key for watch in operations[n].watches]
        if what == 1 and came[n] > at:
            for key in keys:
                lists[key].append(n)
        elif what == 0:
            ended.add(n)
            checked = keys[(at - began) % len(keys)]
            lists[checked] = [waiting for waiting in lists[checked] if waiting not in ended]
        elif what == 2:
            ended.add(n)
        if what == 1:
            most = max(most, sum(map(len, lists.values())))
    return most


def test_without_a_purge_lists_hold_what_a_dumb_model_says(known: Known) -> None:
    found = rows_of(pipeline.replay(known.operations, known.outcomes, [PURGED]))
    for number, trace in enumerate(traces()):
        row = found[f"t{number}", PURGED]
        operations = with_timeout(trace, PURGED.timeout_ms).operations
        assert row["watched_most"] == watched_by_hand(operations, ends(number)), trace
        assert (row["purges"], row["purged_past"]) == (0, 0)


def test_kafka_purges_when_its_estimate_passes_the_interval() -> None:
    """Operations on a busy key and an idle one: the idle key's list grows until E less what is pending passes 10."""
    import numpy as np

    count = 100
    starts = np.arange(count) * 1_000_000
    first = np.arange(count) * 2
    keys = np.tile([1, 2], count)
    # 100 ms each: the drawn key is the first, as each ends at an even time.
    few = purges(starts, np.full(count, 10**9), starts + 100_000, first, first + 2, keys, 10)
    many = purges(starts, np.full(count, 10**9), starts + 100_000, first, first + 2, keys, 10**6)
    assert many == (count + 1, 0, 0)
    assert few.watched_most is not None
    assert 10 <= few.watched_most <= 14
    assert few.purges == 9
    assert few.purged_past == 9 * 11


def test_the_grid_of_one_huge_instance_is_spread_over_tasks(spark: SparkSession) -> None:
    ops = [operation_row(Op(f"{n}", n, 5, (Watch("k", 1),), "all")) for n in range(1000)]
    operations = operations_table(spark, ops).withColumns({"outcome": F.lit("expired"), "waited_ms": F.lit(5.0)})
    replayed = pipeline.replay(operations, None, pipeline.grid(tick_ms=[1, 2, 3, 4, 5, 6]))
    assert replayed.select(F.spark_partition_id()).distinct().count() == 3


def test_what_cannot_be_replayed_is_left_out_and_counted(spark: SparkSession) -> None:
    row: dict[str, Any] = dict.fromkeys(OBSERVED.fieldNames())
    row |= {"instance": "i", "start": "2026-01-01", "timeout_ms": 100, "outcome": "completed", "waited_ms": 1.0}
    bad: list[dict[str, Any]] = [
        {"start": None},
        {"start": "1969-12-31"},
        {"outcome": None},
        {"waited_ms": None},
        {"waited_ms": -1.0},
        {"waited_ms": float("nan")},
        {"waited_ms": 1e300},
        {"timeout_ms": None},
        {"timeout_ms": -1},
        {"timeout_ms": 1 << 62},
        {"instance": None},
    ]
    rows = [row | change for change in ({}, *bad)]
    schema = "instance string, start string, timeout_ms long, outcome string, waited_ms double"
    few = spark.createDataFrame([tuple(r[n.split()[0]] for n in schema.split(", ")) for r in rows], schema)
    others = {n: F.lit(None).cast(OBSERVED[n].dataType) for n in ("op_id", "kind", "watches", "condition")}
    operations = few.withColumns({"start": F.col("start").cast("timestamp"), **others})
    counts = {
        place: (found["operations"], found["left_out"])
        for place, found in rows_of(pipeline.replay(operations, None, pipeline.grid(timeout_ms=[None, 7]))).items()
    }
    own, seven = pipeline.grid(timeout_ms=[None, 7])
    assert counts == {("i", own): (1, 10), ("i", seven): (4, 7), ("", own): (1, 0), ("", seven): (1, 0)}
    assert pipeline.replay(operations.limit(0)).count() == 0


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"tick_ms": 0}, "tick_ms must be a positive number of whole microseconds, not 0"),
        ({"tick_ms": 0.0005}, "tick_ms must be a positive number of whole microseconds, not 0.0005"),
        ({"wheel_size": 1}, "wheel_size must be from 2 to 65,536 buckets, not 1"),
        ({"timeout_ms": -1}, "timeout_ms must be a whole number from 0 to"),
        ({"timeout_ms": 1.5}, "timeout_ms must be a whole number from 0 to"),
        ({"purge_interval": 0}, "purge_interval must be a whole number from 1 to"),
    ],
)
def test_a_setting_that_no_purgatory_can_have_is_refused(setting: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        pipeline.Configuration(**setting)


def test_configurations_may_be_a_table(spark: SparkSession, known: Known) -> None:
    operations, outcomes = known.operations, known.outcomes
    settings = spark.createDataFrame([(2.0, None), (2.0, 7), (2.0, 7)], "tick_ms double, timeout_ms long")
    found = rows_of(pipeline.replay(operations, outcomes, settings))
    assert {configuration for _, configuration in found} == set(pipeline.grid(tick_ms=[2], timeout_ms=[None, 7]))
    for sql, complaint in (
        ("SELECT 1 AS tick", "configurations: there is no setting 'tick'; the settings are tick_ms, wheel_size"),
        ("SELECT 1 AS wheel_size", "configurations: wheel_size must be from 2"),
        ("SELECT 1 AS tick_ms WHERE false", "there is no configuration to replay"),
    ):
        with pytest.raises(AbeyantError, match=complaint):
            pipeline.replay(operations, outcomes, spark.sql(sql))


def test_wrong_tables_are_refused_and_nothing_runs_before_an_action(known: Known) -> None:
    operations, events = known.operations, known.events
    with pytest.raises(SchemaError, match="operations: no column 'outcome'"):
        pipeline.replay(operations)
    with pytest.raises(SchemaError, match="ends has neither a column 'progress'"):
        pipeline.replay(operations, events.drop("progress"))
    with pytest.raises(ValueError, match="deadline must be 'inclusive' or 'exclusive', not 'open'"):
        pipeline.replay(operations, events, deadline="open")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="points must be at least 3, not 2"):
        pipeline.replay_pending(operations, events, points=2)
    pipeline.replay(operations, events.withColumn("progress", F.raise_error("this was run").cast("long")))


def test_purges_over_years_take_no_time_and_over_centuries_are_refused() -> None:
    year = 365 * 86_400 * 10**6
    starts = np.array([0, 80 * year])
    never, timeouts, first = np.full(2, NEVER), np.array([60 * year, 1]), np.arange(2)
    assert purges(starts, timeouts, never, first, first + 1, first, 1) == (2, 0, 0)
    with pytest.raises(AbeyantError, match="over at most 90 years, and the operations span 160"):
        purges(2 * starts, timeouts, never, first, first + 1, first, 1)
