"""Observe each batch's counts, watermark and size of the state, by rows of status among the answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from abeyant.pipeline.resolver.rejected import DUPLICATE, LATE
from abeyant.pipeline.resolver.streams.clock import START

__all__ = ["STANDING", "BatchCounts", "batch_counts", "observed"]

STANDING: Final = StructType([StructField(name, LongType()) for name in ("pending", "watermark", "state_bytes")])
"""Columns of a shard's status after a batch, as in `layout.STATUS`."""

_NAME: Final = "abeyant"
_TICKS: Final = re.compile(r"RateStreamV2\[.*\bnumPartitions=1\b")
"""Spark's description of our source of ticks (`plan`) in a query's progress."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class BatchCounts:
    """Counts of one batch. Rejected rows are `late`, `duplicates` or `invalid`; `pending` are the remaining watches."""

    batch: int
    rows: int
    """Rows read from all sources but ticks, which are many after an outage: one for each tick that was missed."""
    rows_per_second: float
    completed: int
    expired: int
    late: int
    duplicates: int
    invalid: int
    pending: int
    watermark: datetime | None
    """None until the clocks of both tables are known: see `clock`."""
    state_bytes: int
    cancelled: int = 0
    late_by: float | None = None
    """Greatest time in seconds by which a late row was before the watermark; None without such a row."""


def observed(answered: DataFrame) -> DataFrame:
    """Observe the counts of the answers in each batch, and drop the rows of status, which serve only these counts."""
    reason = F.col("reason")
    late, duplicate = reason.startswith(LATE), reason.startswith(DUPLICATE)
    figures = {
        "completed": _count(F.col("outcome") == "completed"),
        "expired": _count(F.col("outcome") == "expired"),
        "cancelled": _count(F.col("outcome") == "cancelled"),
        "late": _count(late),
        "late_by": F.max(F.when(late, _behind_us(reason))),
        "duplicates": _count(duplicate),
        "invalid": _count(~late & ~duplicate),
        "pending": F.sum("pending"),
        "watermark": F.max("watermark"),
        "state_bytes": F.sum("state_bytes"),
    }
    counted = answered.observe(_NAME, *(figure.alias(name) for name, figure in figures.items()))
    return counted.where(F.col("pending").isNull())


def batch_counts(progress: Any) -> BatchCounts | None:
    """Return the counts in a query's `lastProgress` (or a listener's); None if the query is not of `resolve_stream`."""
    figures = None if progress is None else progress.observedMetrics.get(_NAME)
    if figures is None or figures["pending"] is None:
        return None
    counts = figures.asDict()
    input_rows = progress.numInputRows
    ticks = sum(source.numInputRows for source in progress.sources if _TICKS.match(source.description))
    return BatchCounts(
        batch=progress.batchId,
        rows=input_rows - ticks,
        rows_per_second=progress.processedRowsPerSecond * (input_rows - ticks) / max(1, input_rows),
        **counts
        | {
            "watermark": _time(counts["watermark"]),
            "late_by": None if counts["late_by"] is None else counts["late_by"] / 1_000_000,
        },
    )


def _count(condition: Column) -> Column:
    return F.count(F.when(condition, F.lit(1)))


def _behind_us(reason: Column) -> Column:
    """Return by how many microseconds a late row was before the watermark, parsed from the two times in its reason."""
    time, watermark = (F.get(F.split(reason, " "), F.lit(word)).try_cast("timestamp") for word in (2, 7))
    return F.unix_micros(watermark) - F.unix_micros(time)


def _time(watermark_us: int) -> datetime | None:
    if watermark_us == START:
        return None
    try:
        return _EPOCH + timedelta(microseconds=watermark_us)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if watermark_us > 0 else datetime.min.replace(tzinfo=UTC)
