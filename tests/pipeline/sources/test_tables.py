"""Anybody's tables: which texts are times, and how operations that ended are read from text."""

from __future__ import annotations

from pyspark.sql import SparkSession

from abeyant.pipeline.replayer.traces import traces
from abeyant.pipeline.sources.records import read_events
from abeyant.pipeline.sources.tables import complete, events_from, observed_from


def test_a_clock_time_without_a_day_is_no_time(spark: SparkSession) -> None:
    """Spark would put it on the day on which it reads it: a batch done again on another day would answer otherwise."""
    texts = ["12:30:00", "T12:30", " 12:30", "2026-01-01 12:30:00", "2026-01-01", "1999-1-1 1:2"]
    table = spark.createDataFrame([(text, "k") for text in texts], "at STRING, key STRING")
    read = [row.at is not None for row in events_from(table).select("at").collect()]
    assert read == [False, False, False, True, True, True]
    rows = [(f'{{"at":"{text}","key":"k"}}', ("f",)) for text in texts]
    records = spark.createDataFrame(rows, "value STRING, record STRUCT<file: STRING>")
    found = read_events(records).collect()
    assert [row.at is not None for row in found] == read
    assert found[0][-2] == "at is not a timestamp: 12:30:00"


def test_ids_and_keys_may_be_integers(spark: SparkSession) -> None:
    query = "SELECT 1L AS op_id, 4 AS key, TIMESTAMP '2026-01-01' AS start, 60000L AS timeout_ms, 7S AS kind"
    (row,) = complete(spark.sql(query), "operations").collect()
    assert (row.op_id, row.kind, row.watches[0].key) == ("1", "7", "4")


def test_operations_that_ended_are_read_from_text(spark: SparkSession) -> None:
    rows = [
        ("1", "2026-01-01T00:00:00Z", "1000", "completed", "500.5"),
        ("2", "2026-01-01T00:00:02Z", "1000", "expired", "1000"),
        ("3", "12:30", "1000", "expired", "1000"),
    ]
    table = spark.createDataFrame(rows, "op_id STRING, Start STRING, timeout_ms STRING, Outcome STRING, waited STRING")
    observed = observed_from(table.withColumnRenamed("waited", "waited_ms"), {"kind": "'late'"})
    assert [row.kind for row in observed.select("kind").collect()] == ["late"] * 3
    found = traces(observed, None, [], keys=False).collect()
    first = 1_767_225_600_000_000
    assert [row.end_us for row in found] == [first + 500_500, ~(first + 3_000_000), None]
    assert [row.timeout_us for row in found] == [1_000_000] * 3
