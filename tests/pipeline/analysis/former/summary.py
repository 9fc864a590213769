"""Counts, shares and percentiles by instance and kind, and how the waits are spread."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import SUMMARY, WAITS
from pipeline.analysis.former.ranked import Ranked, percentiles, ranked_waits

__all__ = ["expired_share", "summary", "waits"]

_BINS_PER_DECADE: Final = 10


def summary(operations: DataFrame | Ranked) -> DataFrame:
    """Count the operations of each instance (`*` for all together) and kind (`schemas.SUMMARY`)."""
    ranked = operations if isinstance(operations, Ranked) else ranked_waits(operations)
    return (
        ranked.rows.groupBy(*ranked.group)
        .agg(
            F.sum("operations").alias("operations"),
            F.coalesce(F.sum(F.when(F.col("wait_us") > 0, F.col("operations"))), F.lit(0)).alias("waited"),
            *(F.sum(name).alias(name) for name in ("completed", "expired", "unknown")),
            *percentiles(),
        )
        .withColumn("expired_share", expired_share())
        .select(*SUMMARY.fieldNames())
    )


def expired_share() -> Column:
    """Return the share that expired of the operations whose outcome is known, null when there is none."""
    known = F.col("completed") + F.col("expired")
    return F.when(known > 0, F.col("expired") / known)


def waits(operations: DataFrame | Ranked) -> DataFrame:
    """Count the operations by length of wait, ten bins a decade, for each kind and outcome (`schemas.WAITS`)."""
    ranked = operations if isinstance(operations, Ranked) else ranked_waits(operations)
    # The base-10 logarithm of a power of ten is exact, and no other edge is a whole number of microseconds.
    step = F.floor(F.log10(F.col("wait_us").cast("double")) * _BINS_PER_DECADE)
    spread = (
        ranked.rows.groupBy(*ranked.group, F.when(F.col("wait_us") > 0, step).alias("step"))
        .agg(*(F.sum(name).alias(name) for name in ("completed", "expired", "unknown")))
        .unpivot([*ranked.group, "step"], ["completed", "expired", "unknown"], "outcome", "operations")
    )

    def edge(step: Column) -> Column:
        # Microseconds to milliseconds inside the exponent: 1 ms is then exactly 1.
        return F.coalesce(F.pow(F.lit(10.0), (step - 3 * _BINS_PER_DECADE) / _BINS_PER_DECADE), F.lit(0.0))

    return (
        spread.where(F.col("operations") > 0)
        .withColumns({"low_ms": edge(F.col("step")), "high_ms": edge(F.col("step") + 1)})
        .select(*WAITS.fieldNames())
    )
