"""How many operations were pending at any time: an exact sweep, not samples."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import PENDING, check_table
from pipeline.analysis.former.ranked import checked, with_all_instances
from pipeline.analysis.former.running import with_running_totals

__all__ = ["PLOT_POINTS", "pending_over_time", "pending_plot"]

PLOT_POINTS: Final = 2000

_BUCKET_US: Final = 10_000_000
_GROUP: Final = ("instance", "kind")


def pending_over_time(operations: DataFrame) -> DataFrame:
    """Return the number of pending operations at every instant at which it changes (`schemas.PENDING`).

    An operation is pending from its start, included, to its end, not included; so one that did not wait is
    never pending. Each instance and kind is a series, and `*` sums over the instances.
    """
    start = F.unix_micros("start")
    edges = F.array(
        F.struct(start.alias("at_us"), F.lit(1).alias("change")),
        F.struct((start + F.col("wait_us")).alias("at_us"), F.lit(-1).alias("change")),
    )
    waited = checked(operations).where((F.col("wait_us") > 0) & F.col("start").isNotNull())
    changes = (
        with_all_instances(waited.select(*_GROUP, F.inline(edges)))
        .groupBy(*_GROUP, F.floor(F.col("at_us") / _BUCKET_US).alias("bucket"), "at_us")
        .agg(F.sum("change").alias("change"))
        .where(F.col("change") != 0)
    )
    swept = with_running_totals(changes, _GROUP, "bucket", "at_us", sums={"before": F.col("change")})
    return swept.select(
        *_GROUP,
        F.timestamp_micros("at_us").alias("at"),
        (F.col("before") + F.col("change")).alias("pending"),
    )


def pending_plot(pending: DataFrame, points: int = PLOT_POINTS) -> DataFrame:
    """Reduce each series to at most `points` rows for drawing, all of them rows of `pending`.

    Time is cut into equal bins; of each bin the least, the greatest and the last value are kept, so that no peak
    is lost and the steps between bins are true.
    """
    if points < 3:
        raise ValueError(f"points must be at least 3, not {points}")
    check_table(pending, PENDING, "pending")
    bins = points // 3
    at_us = F.unix_micros("at")
    span = pending.agg(F.min(at_us).alias("first_us"), F.max(at_us).alias("last_us"))
    binned = pending.crossJoin(F.broadcast(span)).withColumn(
        "bin", F.floor((at_us - F.col("first_us")) * bins / (F.col("last_us") - F.col("first_us") + 1))
    )
    # Of equal values the earliest, by the structs' order.
    kept = binned.groupBy(*_GROUP, "bin").agg(
        F.min(F.struct("pending", "at")).alias("least"),
        F.max(F.struct("pending", (-at_us).alias("earlier"), "at")).alias("greatest"),
        F.max(F.struct("at", "pending")).alias("last"),
    )
    each = F.array_distinct(
        F.array(*(F.struct(f"{name}.at", f"{name}.pending") for name in ("least", "greatest", "last")))
    )
    return kept.select(*_GROUP, F.inline(each)).select(*PENDING.fieldNames())
