"""Counts by slices of time, from which the report makes its tables and figures anew for a part of the log.

A slice is one of `SLICES` equal parts of the time from the first start to the last. So these tables are small however
long the log is, and a part of it is told apart to that precision.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import KEYS_BY_TIME, REQUESTS_BY_TIME, WAITS_BY_TIME
from pipeline.analysis.former.ranked import checked

__all__ = ["KEYS_A_KIND", "SLICES", "keys_by_time", "requests_by_time", "waits_by_time"]

SLICES: Final = 48
KEYS_A_KIND: Final = 8
"""How many keys of each instance and kind are counted over time, by each of three measures."""

_STEPS_PER_DECADE: Final = 10
_MEASURES: Final = ("p95_ms", "total_waited_ms", "expired")
_KEY: Final = ("instance", "kind", "key")


def waits_by_time(operations: DataFrame) -> DataFrame:
    """Count operations by kind, outcome, length of wait, and the slice of time they started in (`WAITS_BY_TIME`)."""
    rows = _in_slices(_known(operations), "start", operations)
    return _counted(rows, "instance", "kind").select(*WAITS_BY_TIME.fieldNames())


def keys_by_time(operations: DataFrame, by_key: DataFrame) -> DataFrame:
    """Count the same by key, of the keys that are first in `by_key` by one measure or other (`KEYS_BY_TIME`)."""
    first = by_key.select(*_KEY, F.least(*map(_rank, _MEASURES)).alias("rank")).where(F.col("rank") <= KEYS_A_KIND)
    keys = F.explode(F.array_distinct(F.transform("watches", lambda watch: watch["key"])))
    watched = _in_slices(_known(operations), "start", operations).withColumn("key", keys)
    rows = watched.join(F.broadcast(first.drop("rank")), [*_KEY])
    return _counted(rows, *_KEY).select(*KEYS_BY_TIME.fieldNames())


def requests_by_time(requests: DataFrame, operations: DataFrame) -> DataFrame:
    """Count requests (instance, api, at, requests, waited) by the operations' slices (`REQUESTS_BY_TIME`)."""
    rows = _in_slices(requests, "at", operations).drop("at").withColumnRenamed("slice", "at")
    sums = [F.sum(name).alias(name) for name in ("requests", "waited")]
    return rows.groupBy("instance", "api", "at").agg(*sums).select(*REQUESTS_BY_TIME.fieldNames())


def _known(operations: DataFrame) -> DataFrame:
    return checked(operations).where(F.col("start").isNotNull())


def _in_slices(rows: DataFrame, time: str, operations: DataFrame) -> DataFrame:
    """Add when the slice begins in which `time` lies; what lies outside is of the first, or the last."""
    started = F.unix_micros("start")
    span = operations.agg(F.min(started).alias("_first"), F.max(started).alias("_last"))
    width = F.ceil((F.col("_last") - F.col("_first") + 1) / SLICES)
    number = F.floor((F.unix_micros(time) - F.col("_first")) / width)
    begin = F.col("_first") + F.greatest(F.lit(0), F.least(F.lit(SLICES - 1), number)) * width
    sliced = rows.crossJoin(F.broadcast(span)).withColumn("slice", F.timestamp_micros(begin.cast("long")))
    return sliced.drop("_first", "_last")


def _counted(rows: DataFrame, *group: str) -> DataFrame:
    step = F.floor(F.log10(F.col("wait_us").cast("double")) * _STEPS_PER_DECADE) - 3 * _STEPS_PER_DECADE
    return rows.groupBy(
        *group,
        F.col("slice").alias("at"),
        F.coalesce("outcome", F.lit("unknown")).alias("outcome"),
        F.when(F.col("wait_us") > 0, step).cast("long").alias("step"),
    ).agg(F.count(F.lit(1)).alias("operations"))


def _rank(measure: str) -> Column:
    return F.row_number().over(Window.partitionBy("instance", "kind").orderBy(F.col(measure).desc(), "key"))
