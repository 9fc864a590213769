"""Tables with fewer columns and other types, on Spark: as `abeyant.tables` takes them (tests/tables)."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pandas as pd
import polars as pl
from pyspark.sql import SparkSession

from abeyant import pipeline
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
    (aside,) = pipeline.invalid_operations(dataframe).collect()
    assert (aside.op_id, aside.reason) == ("c", "timeout_ms is not a whole number: 0.5")
    floats = pl.DataFrame({"key": ["x"], "at": [NOON], "progress": [float("nan")]})
    assert [row.reason for row in pipeline.invalid_events(floats).collect()] == ["progress is not a whole number: nan"]


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
    assert {row.op_id: row.reason for row in pipeline.invalid_operations(operations).collect()} == {
        "a": "timeout_ms is not a whole number: 15 min",
        "b": "timeout_ms is not a whole number: 900000.5",
        "c": "start is not a timestamp: noon",
        "d": "required is not a whole number: one",
        "f": "no timeout_ms",
    }
    numbers = spark.createDataFrame([("x", NOON, 1.5), ("x", NOON, 2.0)], "key STRING, at TIMESTAMP, progress DOUBLE")
    events = events_from(numbers)
    assert [row.reason for row in pipeline.invalid_events(events).collect()] == ["progress is not a whole number: 1.5"]
    assert [row.op_id for row in pipeline.resolve(operations, events).collect()] == ["e"]
