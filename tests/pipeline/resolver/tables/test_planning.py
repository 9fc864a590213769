"""What a call of `resolve` does before any action: the jobs that it runs and the files that the driver opens."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE
from abeyant.pipeline.resolver.tables.plain_parquet import footers, may_have_steps, plain_operations, steps
from abeyant.pipeline.resolver.tables.plain_parquet.footers import DIRECT
from abeyant.pipeline.resolver.tables.plain_parquet.stored import Stored, opened

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64())]))
EVENTS = pa.table(
    {
        "instance": pa.array([""]),
        "key": pa.array(["a"]),
        "at": pa.array([0], TIME),
        "progress": pa.array([1]),
    }
)


def operations_of(*conditions: str | None) -> pa.Table:
    rows = len(conditions)
    return pa.table(
        {
            "instance": pa.array([""] * rows),
            "op_id": pa.array([str(number) for number in range(rows)]),
            "kind": pa.array(["kind"] * rows),
            "start": pa.array([0] * rows, TIME),
            "timeout_ms": pa.array([1000] * rows),
            "watches": pa.array([[{"key": "a", "required": 1}]] * rows, WATCHES),
            "condition": pa.array(conditions, pa.string()),
        }
    )


@contextmanager
def jobs_of(spark: SparkSession) -> Iterator[list[int]]:
    """Yield a list that has, at the end, the jobs that ran meanwhile."""
    group, found = "planning", list[int]()
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(group))
    spark.sparkContext.setJobGroup(group, "")
    try:
        yield found
        found += set(tracker.getJobIdsForGroup(group)) - before
    finally:
        spark.sparkContext.setJobGroup("others", "")


@pytest.fixture
def opened_files(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()

    def counting(file: Stored) -> Any:
        counts[Path(file.name).parent.name] += 1
        return opened(file)

    for module in (footers, steps):
        monkeypatch.setattr(module, "opened", counting)
    return counts


def read(spark: SparkSession, *paths: Path) -> DataFrame:
    return spark.read.parquet(*(f"file://{path}" for path in paths))


def test_statistics_show_whether_there_are_steps(spark: SparkSession, tmp_path: Path) -> None:
    frames = []
    for conditions in (("all", "any", None), ("all", "then"), ("zzz", "all"), (None, None)):
        path = tmp_path / f"{conditions[0]}-{conditions[1]}.parquet"
        pq.write_table(operations_of(*conditions), path)
        frames.append(read(spark, path))
    pq.write_table(operations_of("all", "any"), tmp_path / "none.parquet", write_statistics=False)
    frames.append(read(spark, tmp_path / "none.parquet"))
    known = [False, True, True, False, True]
    assert [may_have_steps(frame, plain_operations(frame)) for frame in frames] == known
    assert [may_have_steps(frame, None) for frame in frames] == known


def test_a_column_is_followed_to_its_files(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(operations_of("all", "any", None), tmp_path / "one.parquet")
    pq.write_table(operations_of("all", "then"), tmp_path / "other.parquet")
    upper_case = operations_of("all")
    upper_case = upper_case.rename_columns([name.upper() for name in upper_case.column_names])
    pq.write_table(upper_case, tmp_path / "upper.parquet")
    one, other, upper = (read(spark, tmp_path / f"{name}.parquet") for name in ("one", "other", "upper"))
    ids = spark.range(9).selectExpr("string(id) AS op_id")
    steps_of_ids = ids.withColumn("condition", F.concat(F.lit("th"), F.right("op_id", F.lit(0)), F.lit("en")))
    cached = one.where("timeout_ms > 5").cache()
    without = [
        one.where("timeout_ms % 7 > -7"),
        one.withColumn("was", F.col("condition")).drop("condition").withColumnRenamed("was", "condition"),
        one.withColumn("condition", F.lit("any")),
        one.withColumn("condition", F.coalesce("condition", F.lit("all"))).join(ids, "op_id", "left"),
        one.union(one.orderBy("start")).distinct(),
        ids.join(one.repartition("kind"), "op_id", "left"),
        upper.where("timeout_ms % 7 > -7").selectExpr("CoNdItIoN AS condition"),
        other.withColumnsRenamed({"condition": "was", "kind": "condition"}),
    ]
    perhaps = [
        other.where("timeout_ms % 7 > -7").join(ids, "op_id"),
        one.union(other),
        one.withColumn("condition", F.coalesce("condition", F.lit("then"))),
        one.withColumn("condition", F.lower("condition")),
        one.drop("condition").join(steps_of_ids, "op_id"),
        one.withColumnsRenamed({"condition": "kind", "kind": "condition"}).union(other),
        one.groupBy("op_id").agg(F.max("condition").alias("condition")),
        cached,
    ]
    try:
        assert [may_have_steps(view, None) for view in without] == [False] * len(without)
        assert [may_have_steps(view, None) for view in perhaps] == [True] * len(perhaps)
    finally:
        cached.unpersist()


@pytest.mark.slow
def test_many_files_cost_a_call_no_job_and_one_look_at_the_end_of_each(
    spark: SparkSession, tmp_path: Path, opened_files: Counter[str]
) -> None:
    many = 4200  # until November 2026 a call scanned more than 4,096 files for a `then`: minutes on a busy machine
    (tmp_path / "operations").mkdir()
    (tmp_path / "events").mkdir()
    first = tmp_path / "operations" / "0.parquet"
    pq.write_table(operations_of("all", "any"), first)
    for number in range(1, many):
        os.link(first, tmp_path / "operations" / f"{number}.parquet")
    pq.write_table(EVENTS, tmp_path / "events" / "0.parquet")
    operations, events = read(spark, tmp_path / "operations"), read(spark, tmp_path / "events")
    with jobs_of(spark) as jobs:
        outcomes = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE)
    assert jobs == []
    assert opened_files == {"operations": many, "events": 1}
    assert not outcomes.inputFiles()  # workers read these files
    opened_files.clear()
    with jobs_of(spark) as jobs:
        pipeline.resolve(operations.where("timeout_ms % 7 > -7"), events, sample=DEFAULT_SAMPLE)
    assert jobs == []
    assert opened_files == {"operations": many}


def test_a_condition_that_spark_computes_is_looked_at_by_one_job(
    spark: SparkSession, tmp_path: Path, opened_files: Counter[str]
) -> None:
    pq.write_table(operations_of("all", "any"), tmp_path / "operations.parquet")
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    operations = read(spark, tmp_path / "operations.parquet").withColumn("condition", F.lower("condition"))
    events = read(spark, tmp_path / "events.parquet")
    with jobs_of(spark) as jobs:
        pipeline.resolve(operations, events)
    assert len(jobs) == 1
    assert not opened_files


def test_no_file_is_opened_where_spark_is_to_read(
    spark: SparkSession, tmp_path: Path, opened_files: Counter[str]
) -> None:
    pq.write_table(operations_of("all", "any"), tmp_path / "operations.parquet")
    spark.conf.set(DIRECT, "false")
    try:
        assert may_have_steps(read(spark, tmp_path / "operations.parquet"), None)
    finally:
        spark.conf.unset(DIRECT)
    assert not opened_files


@pytest.mark.parametrize(
    ("lacks", "further"),
    [
        ("timeout_ms", "timestamp_seconds(9) AS deadline"),
        ("timeout_ms", "INTERVAL 9 SECONDS AS timeout"),
        ("", "'b' AS cancel_key"),
        ("", "'b' AS pause_key"),
        ("", "inline(array(struct('b' AS extend_key, 9L AS extend_ms)))"),
    ],
)
def test_further_columns_cost_a_call_no_job(
    spark: SparkSession, tmp_path: Path, opened_files: Counter[str], lacks: str, further: str
) -> None:
    pq.write_table(operations_of("all", "then"), tmp_path / "operations.parquet")
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    operations = read(spark, tmp_path / "operations.parquet").selectExpr("*", further).drop(lacks)
    events = read(spark, tmp_path / "events.parquet")
    with jobs_of(spark) as jobs:
        pipeline.resolve(operations, events)
    assert jobs == []
    assert not opened_files
