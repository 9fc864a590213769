"""Small tables, by Spark alone: each is read once, nothing is looked at beforehand, and no Python is started.

    operations ── valid ── one row a watch ──┐
                                             ├─ by key, progress falling: the least `at` so far ── combined ── outcomes
    events ────── valid ─────────────────────┘

The least `at` of all events whose progress is at least `required` is when a watch was reached: see kernels.resolve. A
window tells it in one walk over a key's sorted rows. A key has one task, whatever its size: fit for small tables only.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.resolver.reasons import DEADLINE_US
from abeyant.pipeline.resolver.tables.hot_keys import PLACE
from abeyant.pipeline.spark.plans import Size
from abeyant.pipeline.spark.session import adapts_partitions, shuffle_partitions

__all__ = ["few_partitions", "reached_by_spark"]

_SMALL_BYTES: Final = 96 << 20
_PARTITION_BYTES: Final = 1 << 20  # of a small table, as Spark's own least partition

_WATCH: Final = (
    *("instance", "op_id", "kind", "unix_micros(start) AS start_us", f"{DEADLINE_US} AS deadline_us"),
    "coalesce(condition = 'any', false) AS any_of",
    "struct(condition, watches) AS version",
    "inline(watches) AS (key, progress)",
)
_EVENT: Final = ("instance", "key", "progress", "unix_micros(at) AS at_us")
# By the key's hash first: numbers are sorted by far faster than texts, most of which begin alike.
_FIRST: Final = "min(at_us) OVER (PARTITION BY place, instance, key ORDER BY progress DESC) AS first"
_REACHED: Final = "CASE WHEN first <= start_us THEN start_us WHEN first {} deadline_us THEN first END AS reached"


def few_partitions(spark: SparkSession, sizes: list[Size | None]) -> list[Any] | None:
    """Return None where tables are not known to be small: where a look beforehand takes no longer than all the rest.

    Else the partitions of a shuffle: as many as Spark finds right once it has shuffled (an empty list), where it adapts
    them itself. Rows that are in the plan themselves count as small, however many: each time that a plan names them,
    the driver holds them once more. Should tables be larger than Spark believes, all still works.
    """
    total = sum(_SMALL_BYTES + 1 if size is None else size.bytes for size in sizes)
    if total > _SMALL_BYTES and not all(size is not None and size.in_plan for size in sizes):
        return None
    return [] if adapts_partitions(spark) else [min(shuffle_partitions(spark), 1 + int(total / _PARTITION_BYTES))]


def reached_by_spark(
    operations: DataFrame, events: DataFrame, deadline: Literal["inclusive", "exclusive"], few: list[Any]
) -> DataFrame:
    """Tell of each watch of valid operations when it was reached, in its time: `reaching.REACHED[COMBINED]`, and more.

    O(n log n). `few` is as `few_partitions` says.
    """
    rows = operations.selectExpr(*_WATCH).unionByName(events.selectExpr(*_EVENT), allowMissingColumns=True)
    sorted_by = rows.selectExpr("*", f"{PLACE} AS place").repartition(*few, "place")
    told = sorted_by.selectExpr("*", _FIRST).where("op_id IS NOT NULL")
    return told.selectExpr("*", _REACHED.format("<=" if deadline == "inclusive" else "<"))
