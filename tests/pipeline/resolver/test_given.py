"""Tables that are no DataFrames of Spark: pandas, Polars and Arrow, as they are."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.errors import SchemaError
from abeyant.pipeline.resolver.given import as_dataframe
from seeds import with_slow

NOON = datetime(2026, 3, 2, 12)
OPERATIONS: dict[str, list[Any]] = {
    "instance": ["shop"] * 3,
    "op_id": ["a", "b", "b"],
    "kind": ["order"] * 3,
    "start": [NOON] * 3,
    "timeout_ms": [60_000] * 3,
    "watches": [[{"key": key, "required": 1}] for key in ("a", "b", "b")],
    "condition": ["all"] * 3,
    "Note": [1.5, 2.5, 3.5],
}
EVENTS: dict[str, list[Any]] = {
    "instance": ["shop"],
    "key": ["a"],
    "at": [NOON + timedelta(seconds=7)],
    "progress": [1],
}


def in_chunks(rows: dict[str, list[Any]]) -> pa.Table:
    table = pa.table(rows)
    return pa.concat_tables([table.slice(n, 1) for n in range(table.num_rows)])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, in_chunks])
def test_tables_are_taken_as_they_are(spark: SparkSession, make: Any) -> None:
    outcomes = pipeline.resolve(make(OPERATIONS), make(EVENTS))
    assert sorted((row.op_id, row.outcome, row.waited_ms) for row in outcomes.collect()) == [
        ("a", "completed", 7000.0),
        ("b", "expired", 60_000.0),
    ]
    aside = pipeline.rejected_operations(make(OPERATIONS))
    assert (aside.columns, aside.count()) == ([*OPERATIONS, "reason"], 1)
    assert pipeline.rejected_events(make(EVENTS)).count() == 0


def test_a_table_goes_to_the_session_of_the_other_and_times_are_in_its_zone(spark: SparkSession) -> None:
    events = spark.createDataFrame(pd.DataFrame(EVENTS))
    assert [row.outcome for row in pipeline.resolve(pl.DataFrame(OPERATIONS).head(1), events).collect()] == [
        "completed"
    ]
    early = pa.array([-1_500], pa.timestamp("ns"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table = as_dataframe(pa.table(EVENTS).set_column(2, "at", early), "events", spark)
        micros = table.selectExpr("unix_micros(at)").first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    five_hours = 5 * 3600 * 1_000_000
    assert micros == (five_hours - 2,)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "GMT+2", "UTC-03:30", "+05:30", "Z", "EST"])
@pytest.mark.parametrize("unit", with_slow(["s", "us", "ns"], ["s", "us"]))
def test_times_without_a_zone_are_what_spark_takes_them_for(spark: SparkSession, zone: str, unit: str) -> None:
    """Those too that the clock leaves out, or has twice."""
    texts = [f"2026-{day} {hour:02}:{minute}:00" for day in ("03-29", "10-25", "03-08", "11-01") for hour in range(5)
             for minute in ("00", "30")]  # fmt: skip
    naive = pa.array(texts).cast(pa.timestamp(unit))
    events = pa.table({"instance": [""] * len(texts), "key": texts, "at": naive, "progress": [1] * len(texts)})
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        ours = as_dataframe(events, "events", spark).selectExpr("key", "unix_micros(at)").collect()
        wanted = spark.sql("SELECT unix_micros(CAST(CAST(key AS TIMESTAMP_NTZ) AS TIMESTAMP)) FROM {rows}", rows=(
            spark.createDataFrame([(text,) for text in texts], "key STRING")
        )).collect()  # fmt: skip
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [row[1] for row in ours] == [row[0] for row in wanted]


def test_a_zone_that_arrow_does_not_know_is_named(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "PST")
    try:
        with pytest.raises(SchemaError, match=r"'at' has times without a zone, and .* PST, is known only to Spark"):
            as_dataframe(pa.table(EVENTS), "events", spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_what_is_no_table_or_a_wrong_one_is_refused(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match=r"events must be a DataFrame of Spark or a table with an .*, not list"):
        pipeline.resolve(pd.DataFrame(OPERATIONS), [EVENTS])
    with pytest.raises(SchemaError, match="events: no column 'at', expected a timestamp"):
        pipeline.resolve(pd.DataFrame(OPERATIONS), pl.DataFrame(EVENTS).drop("at"))
    beyond = pl.DataFrame(EVENTS).with_columns(pl.Series("progress", [1 << 63], pl.UInt64))
    with pytest.raises(SchemaError, match="events: column 'progress' is uint64, and cannot be converted to int64"):
        pipeline.resolve(pd.DataFrame(OPERATIONS), beyond)
    zoned = pd.DataFrame(EVENTS | {"at": [NOON.replace(tzinfo=UTC)]})
    assert as_dataframe(zoned, "events", spark).schema["at"].dataType.typeName() == "timestamp"


def _files_of_ours(warned: pytest.WarningsRecorder) -> list[str]:
    """Return the files that our warnings name; without those of sockets that the collector closes meanwhile."""
    return [one.filename for one in warned if issubclass(one.category, UserWarning)]


@pytest.mark.slow  # many tables
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, None])
def test_nearly_all_rows_rejected_is_a_warning_as_without_spark(spark: SparkSession, make: Any) -> None:
    def table(rows: dict[str, list[Any]]) -> Any:
        return spark.createDataFrame(pd.DataFrame(rows)) if make is None else make(rows)

    wrong = table({**OPERATIONS, "condition": ["every"] * 3})
    with pytest.warns(
        pipeline.RejectedRowsWarning, match="^operations: all 3 rows were rejected: condition .*: every"
    ) as warned:
        outcomes = pipeline.resolve(wrong, table(EVENTS))
    assert (_files_of_ours(warned), outcomes.count()) == ([__file__], 0)
    no_time = {**{name: values * 1_001 for name, values in EVENTS.items()}, "at": [NOON] + [None] * 1_000}
    if make is None:
        no_time["at"] = [pd.NaT] * 1_001  # None alone would have no type in Spark
        said = r"^events \(the first 1,000\): all 1,000 rows were rejected: no at, as for key a"
        with pytest.warns(pipeline.RejectedRowsWarning, match=said):
            pipeline.resolve(table(OPERATIONS), table(no_time))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.resolve(table(OPERATIONS), table(EVENTS))
        pipeline.rejected_operations(wrong)


@pytest.mark.parametrize("make", [pd.DataFrame, None])
def test_no_key_in_common_is_a_warning_as_without_spark(spark: SparkSession, make: Any) -> None:
    def table(rows: dict[str, list[Any]]) -> Any:
        return spark.createDataFrame(pd.DataFrame(rows)) if make is None else make(rows)

    keys = [f"A-{number}" for number in range(10)]
    many = {**{name: [values[0]] * 10 for name, values in OPERATIONS.items()}, "op_id": keys}
    many["watches"] = [[{"key": key, "required": 1}] for key in keys]
    said = "operations have watches.key 'A-7', events have key 'a-7', which differ in upper and lower case"
    with pytest.warns(UserWarning, match=said) as warned:
        pipeline.resolve(table(many), table({**{name: values[:1] for name, values in EVENTS.items()}, "key": ["a-7"]}))
    assert _files_of_ours(warned) == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.resolve(table(many), table({**{name: values[:1] for name, values in EVENTS.items()}, "key": ["A-7"]}))


@pytest.mark.slow  # many plans
def test_a_constant_that_is_no_duration_is_an_error_without_a_job(spark: SparkSession, tmp_path: Path) -> None:
    rows = {name: values for name, values in OPERATIONS.items() if name != "timeout_ms"}
    spark.createDataFrame(pd.DataFrame(rows)).write.parquet(str(tmp_path / "operations"))
    stored, events = spark.read.parquet(str(tmp_path / "operations")), spark.createDataFrame(pd.DataFrame(EVENTS))
    said = "^operations: timeout is not a duration such as '15 min': 2 fortnights, in every row; write durations as"
    wrong = stored.withColumn("timeout", F.lit("2 fortnights"))
    with pytest.raises(SchemaError, match=said):
        pipeline.resolve(wrong.where("op_id <> 'x'"), events)
    with pytest.raises(SchemaError, match=said):
        pipeline.resolve(pd.DataFrame(rows).assign(timeout="2 fortnights"), events)
    streamed = spark.readStream.schema(stored.schema).parquet(str(tmp_path / "operations"))
    with pytest.raises(SchemaError, match=said):
        pipeline.resolve_stream(
            streamed.withColumn("timeout", F.lit("2 fortnights")),
            spark.readStream.schema(events.schema).parquet(str(tmp_path / "operations")),
        )
    assert pipeline.rejected_operations(wrong).count() == 3
    for column in (F.lit("15 min"), F.col("kind"), F.concat(F.lit("1"), F.lit(" h"))):
        pipeline.resolve(stored.withColumn("timeout", column), events)
