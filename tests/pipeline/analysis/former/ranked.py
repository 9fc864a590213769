"""Waits counted by length and ranked: what percentiles, the histogram and the time-out curve are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import ALL_INSTANCES, OBSERVED, check_table
from pipeline.analysis.former.running import with_running_totals

__all__ = ["PERCENTILES", "Ranked", "bucket_of", "percentiles", "ranked_waits", "with_all_instances"]

PERCENTILES: Final = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}

# Buckets of about 2 %: however many operations there are, one holds at most as many distinct waits as it spans
# microseconds.
_BUCKETS_PER_E: Final = 46

_NEEDED: Final = ("instance", "kind", "start", "outcome", "waited_ms")


@dataclass(frozen=True)
class Ranked:
    """One row for each distinct wait of a group.

    Columns: the group's, `bucket`, `wait_us`, `operations` that waited exactly so long, of them `completed`,
    `expired` and `unknown`, how many waited less (`before`), the group's `total` operations and distinct waits
    (`points`).
    """

    rows: DataFrame
    group: tuple[str, ...]


def checked(operations: DataFrame) -> DataFrame:
    """Return the operations whose wait is known; `SchemaError` when a needed column is missing or mistyped."""
    needed = OBSERVED.__class__([field for field in OBSERVED.fields if field.name in _NEEDED])
    check_table(operations, needed, "operations")
    return operations.where(F.col("waited_ms").isNotNull()).withColumn(
        "wait_us", F.round(F.col("waited_ms") * 1000).cast("long")
    )


def with_all_instances(rows: DataFrame) -> DataFrame:
    """Give every row a second time, for all instances together."""
    return rows.withColumn("instance", F.explode(F.array("instance", F.lit(ALL_INSTANCES))))


def bucket_of(wait_us: str) -> Column:
    """Return the bucket of a wait: never less for a longer one, since Java's logarithm never is."""
    return F.floor(F.log1p(F.col(wait_us).cast("double")) * _BUCKETS_PER_E)


def ranked_waits(operations: DataFrame, *, all_instances: bool = True) -> Ranked:
    """Count and rank the waits of each (instance, kind), and of all instances together."""
    waits = checked(operations).select("instance", "kind", "wait_us", "outcome")
    return rank(with_all_instances(waits) if all_instances else waits, ("instance", "kind"))


def rank(waits: DataFrame, group: Sequence[str]) -> Ranked:
    """Count and rank rows of (group, wait_us, outcome)."""

    def how_many(outcome: Column) -> Column:
        return F.count(F.when(outcome, F.lit(1)))

    counted = waits.groupBy(*group, bucket_of("wait_us").alias("bucket"), "wait_us").agg(
        F.count(F.lit(1)).alias("operations"),
        how_many(F.col("outcome") == "completed").alias("completed"),
        how_many(F.col("outcome") == "expired").alias("expired"),
        how_many(F.col("outcome").isNull()).alias("unknown"),
    )
    operations = F.col("operations")
    rows = with_running_totals(
        counted,
        group,
        "bucket",
        "wait_us",
        sums={"before": operations},
        totals={"total": operations, "points": F.lit(1)},
    )
    return Ranked(rows, tuple(group))


def percentiles() -> list[Column]:
    """Return aggregates over a group's ranked rows: nearest-rank percentiles and the longest wait, in ms.

    The p-th percentile is the least observed wait that at least p % of the operations do not exceed.
    """
    upto = F.col("before") + F.col("operations")
    found = {
        name: F.min(F.when(upto * 100 >= F.col("total") * percent, F.col("wait_us")))
        for name, percent in PERCENTILES.items()
    }
    found["max_ms"] = F.max("wait_us")
    return [(value / 1000).alias(name) for name, value in found.items()]
