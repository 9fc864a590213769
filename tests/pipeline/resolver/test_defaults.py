"""Tables with fewer columns and other types, on Spark: as `abeyant.tables` takes them (tests/tables)."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.errors import SchemaError
from abeyant.pipeline.sources.tables import events_from, operations_from

NOON = datetime(2026, 3, 2, 12)
OPERATIONS = {"op_id": ["a", "b"], "key": ["x", "y"], "start": [NOON] * 2, "timeout_ms": [60_000] * 2}
EVENTS = {"key": ["x"], "at": [NOON + timedelta(seconds=7)]}


def test_four_columns_and_two_are_enough_whatever_the_table_is(spark: SparkSession) -> None:
    rows = [("a", "x", NOON, Decimal(60_000)), ("b", "y", NOON, Decimal(60_000)), ("c", "x", NOON, Decimal("0.5"))]
    dataframe = spark.createDataFrame(rows, "op_id STRING, key STRING, start TIMESTAMP, timeout_ms DECIMAL(38, 1)")
    for operations, events in (
        (dataframe, spark.createDataFrame(pd.DataFrame(EVENTS))),
        (pd.DataFrame(OPERATIONS), pl.DataFrame(EVENTS)),
        (pl.DataFrame(OPERATIONS).with_columns(pl.col("timeout_ms").cast(pl.Float64)), pd.DataFrame(EVENTS)),
    ):
        found = pipeline.resolve(operations, events).select("instance", "op_id", "kind", "outcome").collect()
        assert sorted(tuple(row) for row in found) == [("", "a", None, "completed"), ("", "b", None, "expired")]
    (aside,) = pipeline.rejected_operations(dataframe).collect()
    assert (aside.op_id, aside.reason) == ("c", "timeout_ms is not a whole number: 0.5")
    floats = pl.DataFrame({"key": ["x"], "at": [NOON], "progress": [float("nan")]})
    assert [row.reason for row in pipeline.rejected_events(floats).collect()] == ["progress is not a whole number: nan"]


def test_a_column_misspelt_is_not_passed_over_in_silence(spark: SparkSession) -> None:
    misspelt = pd.DataFrame({**OPERATIONS, "cancle_key": ["x", "y"]})
    said = r"^operations: the column 'cancle_key' is ignored; did you mean cancel_key\? Rename or drop it$"
    for table in (misspelt, spark.createDataFrame(misspelt)):
        with pytest.warns(UserWarning, match=said):
            pipeline.resolve(table, pd.DataFrame(EVENTS))
    with pytest.warns(UserWarning, match=said):
        operations = operations_from(spark.createDataFrame(misspelt))
    assert "cancle_key" not in operations_from(operations).columns  # and no further warning
    limits = {"timeout": ["1 min", "1 min"], "deadline": [NOON, NOON]}
    both = spark.createDataFrame(pd.DataFrame({**OPERATIONS, **limits}).drop(columns="timeout_ms"))
    with pytest.warns(UserWarning, match=r"^operations: the column 'deadline' is ignored beside 'timeout': drop"):
        pipeline.resolve(both, pd.DataFrame(EVENTS))


@pytest.mark.slow  # many tables
def test_a_value_that_cannot_be_read_is_in_the_reason(spark: SparkSession) -> None:
    texts = "op_id STRING, key STRING, start STRING, timeout_ms STRING, required STRING"
    rows = [
        ("a", "x", "2026-03-02 12:00:00", "15 min", "1"),
        ("b", "x", "2026-03-02 12:00:00", "900000.5", "1"),
        ("c", "x", "noon", "900000", "1"),
        ("d", "x", "2026-03-02 12:00:00", "900000", "one"),
        ("e", "x", "2026-03-02 12:00:00", "900000", "1"),
        ("f", "x", "2026-03-02 12:00:00", None, "1"),
    ]
    operations = operations_from(spark.createDataFrame(rows, texts))
    assert {row.op_id: row.reason for row in pipeline.rejected_operations(operations).collect()} == {
        "a": "timeout_ms is not a whole number: 15 min",
        "b": "timeout_ms is not a whole number: 900000.5",
        "c": "start is not a timestamp: noon",
        "d": "required is not a whole number: one",
        "f": "no timeout_ms",
    }
    numbers = spark.createDataFrame([("x", NOON, 1.5), ("x", NOON, 2.0)], "key STRING, at TIMESTAMP, progress DOUBLE")
    events = events_from(numbers)
    assert [row.reason for row in pipeline.rejected_events(events).collect()] == ["progress is not a whole number: 1.5"]
    assert [row.op_id for row in pipeline.resolve(operations, events).collect()] == ["e"]


def test_a_text_of_which_spark_would_make_another_time_is_rejected(spark: SparkSession) -> None:
    read = {
        "2026-07-01 12:00:00": 12,
        "2026-07-01T12:00:00Z": 12,
        "2026-07-01 12:00:00 UTC": 12,
        "2026-07-01T14:00:00+02:00": 12,
        "2026-07-01 14:00:00 Europe/Berlin": 12,
        "2026-07-01 07:00:00 EST": 12,
        **dict.fromkeys(["12:00:00", "T12:00", "2026", " 202405 ", "1714557600", "2026-07-01 12:00:00 BST"]),
        **dict.fromkeys(["2026-07-01 12:00:00 PST", "2026-07-01T12:00:00IST"]),
    }
    events = events_from(spark.createDataFrame([("k", text) for text in read], "key STRING, at STRING"))
    assert [row[0] for row in events.select(F.hour("at")).collect()] == list(read.values())
    reasons = [row.reason for row in pipeline.rejected_events(events).collect()]
    assert reasons == [f"at is not a timestamp: {text}" for text, hour in read.items() if hour is None]


@pytest.mark.slow
def test_watches_may_require_numbers_that_are_whole(spark: SparkSession) -> None:
    watches = "watches ARRAY<STRUCT<key: STRING, required: {}>>"
    ours = "op_id STRING, start TIMESTAMP, timeout_ms BIGINT"
    rows = [("a", NOON, 60_000, [("x", 1.0), ("x", 0.0)]), ("b", NOON, 60_000, [("x", 1.0), ("x", 0.5)])]
    floats = spark.createDataFrame(rows, f"{ours}, {watches.format('DOUBLE')}")
    sums = floats.withColumn("watches", F.col("watches").cast("ARRAY<STRUCT<key: STRING, required: DECIMAL(38, 1)>>"))
    events = spark.createDataFrame(pd.DataFrame(EVENTS))
    for operations in (floats, sums):
        assert [(row.op_id, row.outcome) for row in pipeline.resolve(operations, events).collect()] == [
            ("a", "completed")
        ]
        reasons = [row.reason for row in pipeline.rejected_operations(operations).collect()]
        assert reasons == ["required is not a whole number: 0.5"]


@pytest.mark.slow  # many tables
def test_watches_may_have_integers_as_keys(spark: SparkSession) -> None:
    """Beside numbers that are whole, or not."""
    schema = "op_id STRING, start TIMESTAMP, timeout_ms BIGINT, watches ARRAY<STRUCT<key: INT, required: DOUBLE>>"
    rows = [("a", NOON, 60_000, [(7, 1.0)]), ("b", NOON, 60_000, [(7, 1.0), (8, 0.5)]), ("c", NOON, 60_000, [(8, 1.0)])]
    operations = spark.createDataFrame(rows, schema)
    events = spark.createDataFrame(pd.DataFrame({"key": [7], "at": [NOON]}))
    found = [(row.op_id, row.outcome) for row in pipeline.resolve(operations, events).collect()]
    assert sorted(found) == [("a", "completed"), ("c", "expired")]
    reasons = [row.reason for row in pipeline.rejected_operations(operations).collect()]
    assert reasons == ["required is not a whole number: 0.5"]


@pytest.mark.slow  # runs a stream
def test_a_stream_needs_four_columns_and_two(spark: SparkSession, tmp_path: Path) -> None:
    for name, rows, time in (("operations", OPERATIONS, "start"), ("events", EVENTS, "at")):
        (tmp_path / name).mkdir()
        table = pa.table({**rows, time: pa.array(rows[time], pa.timestamp("us", "UTC"))})
        pq.write_table(table, tmp_path / name / "1.parquet")
    operations = spark.readStream.schema("op_id STRING, key STRING, start TIMESTAMP, timeout_ms BIGINT")
    sums = operations.parquet(str(tmp_path / "operations")).withColumn("timeout_ms", F.col("timeout_ms") + Decimal(0))
    events = spark.readStream.schema("key STRING, at TIMESTAMP").parquet(str(tmp_path / "events"))
    outcomes = pipeline.resolve(sums, events, lateness=0.0, tick=None, end_of_input=tmp_path / "end", shards=4)
    pipeline.end_of_input(tmp_path / "end")
    found: list[Row] = []
    writer = outcomes.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert sorted((row.instance, row.op_id, row.kind, row.outcome) for row in found) == [
        ("", "a", None, "completed"),
        ("", "b", None, "expired"),
    ]
    # In processing time neither needs a time; in event time both do.
    without = sums.drop("start"), events.drop("at")
    assert pipeline.resolve(*without, time="processing", shards=4).isStreaming
    with pytest.raises(
        SchemaError, match=r"operations: no column 'start'.*; name your own columns: operations\.selectExpr\("
    ):
        pipeline.resolve(*without, shards=4)


def test_an_instance_in_one_table_only_is_refused(spark: SparkSession) -> None:
    operations = spark.createDataFrame(pd.DataFrame(OPERATIONS)).withColumn("Instance", F.lit("b"))
    for table in (pd.DataFrame(EVENTS), spark.createDataFrame(pd.DataFrame(EVENTS))):
        with pytest.raises(SchemaError, match=r"^operations has the column instance and events has none"):
            pipeline.resolve(operations, table)
