"""Anybody's tables: which texts are times, and how operations that ended are read from text."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError, SchemaError
from abeyant.pipeline.replayer.traces import traces
from abeyant.pipeline.schemas import EVENTS, REJECT_REASON
from abeyant.pipeline.sources.records import read_events
from abeyant.pipeline.sources.tables import complete, events_from, observed_from
from abeyant.pipeline.spark.columns import check_table


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


def test_ids_and_keys_may_be_whole_numbers(spark: SparkSession) -> None:
    query = "SELECT 1L AS op_id, 10BD AS key, TIMESTAMP '2026-01-01' AS start, 60000L AS timeout_ms, 7S AS kind"
    (row,) = complete(spark.sql(query), "operations").collect()
    assert (row.op_id, row.kind, row.watches[0].key) == ("1", "7", "10")
    watches = "array(struct(DECIMAL(10) AS key, 1 AS required)) AS watches"
    query = f"SELECT 1 AS op_id, {watches}, TIMESTAMP '2026-01-01' AS start, 1L AS timeout_ms"
    (row,) = complete(spark.sql(query), "operations").collect()
    assert row.watches[0].key == "10"


def test_a_name_in_quotes_is_refused_as_in_this_process(spark: SparkSession) -> None:
    table = spark.sql("SELECT 'k' AS key, current_timestamp() AS `Paid At`")
    with pytest.raises(AbeyantError, match=r"^events: at=.paid at.: in quotes .* backticks: --event 'at=`Paid At`'$"):
        events_from(table, {"at": '"paid at"'})


def test_times_without_a_zone_are_in_the_sessions(spark: SparkSession) -> None:
    """So Spark reads times of pandas from Parquet."""
    naive = "TIMESTAMP_NTZ '2026-01-01 12:00'"
    operations = spark.sql(f"SELECT '1' AS op_id, 'k' AS key, {naive} AS start, {naive} AS deadline")
    events = spark.sql(f"SELECT 'k' AS key, {naive} AS at")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        (operation,) = (
            complete(operations, "operations")
            .selectExpr("unix_millis(start) AS s", "unix_millis(deadline) AS d")
            .collect()
        )
        (event,) = complete(events, "events").selectExpr("unix_millis(at) AS at", "*").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    five_pm = 1_767_286_800_000
    assert (operation.s, operation.d, event[0]) == (five_pm, five_pm, five_pm)
    assert REJECT_REASON not in event.asDict(), "none can fail"


@pytest.mark.parametrize(
    ("column", "mend"),
    [
        ("X'00' AS key", r"is binary, expected string; lower\(hex\(key\)\) makes a text of it"),
        ("1.50 AS key", r"is decimal\(3,2\), expected string; string\(key\) makes a text of it"),
        ("1D AS key", r"is double, expected string; string\(bigint\(key\)\) makes a text of it"),
        (
            "TIMESTAMP_NTZ '2026-01-01' AS at",
            r"timestamp_ntz, expected timestamp; timestamp\(at\) takes it in the session's",
        ),
        ("DATE '2026-01-01' AS at", r"is date, expected timestamp; timestamp\(at\) is its midnight"),
        (
            "1L AS at",
            r"is bigint, expected timestamp; timestamp_millis\(at\) or timestamp_seconds\(at\) makes a time of",
        ),
    ],
)
def test_another_type_is_refused_with_the_sql_that_mends_it(spark: SparkSession, column: str, mend: str) -> None:
    other = "current_timestamp() AS at" if column.endswith("key") else "'k' AS key"
    with pytest.raises(SchemaError, match=mend):
        check_table(spark.sql(f"SELECT {column}, {other}"), StructType([EVENTS["key"], EVENTS["at"]]), "events")
    if "NTZ" in column:
        return  # which only tables of replays and plots are refused for
    with pytest.raises(SchemaError, match=mend):
        complete(spark.sql(f"SELECT {column}, {other}"), "events")


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
