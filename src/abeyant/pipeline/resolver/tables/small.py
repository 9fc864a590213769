"""Resolve small tables by Spark alone: each is read once, without a profile, and no Python worker is started.

    operations ── valid ── one row a watch ──┐
                                             ├─ by key, progress falling: the least `at` so far ── combined ── outcomes
    events ────── valid ─────────────────────┘

A watch was reached at the least `at` of all events whose progress is at least `required`: see kernels.resolve. A
window function finds this time in one pass over a key's sorted rows. All rows of a key are in one task, which is fit
for small tables only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.resolver.rejected import DEADLINE_US
from abeyant.pipeline.resolver.tables.hot_keys import PLACE
from abeyant.pipeline.spark.plans import Size
from abeyant.pipeline.spark.session import adapts_partitions, shuffle_partitions

__all__ = ["SmallTablePlan", "are_large", "are_moderate", "reached_by_spark", "small_table_plan"]

_SMALL_BYTES: Final = 96 << 20
_LARGE_BYTES: Final = 16 * _SMALL_BYTES
_MODERATE_BYTES: Final = 1 << 35  # a 256th of their rows is 100 MB or so, as steps
_MODERATE_PARTITIONS: Final = 64  # four shards for each
_PARTITION_BYTES: Final = 1 << 20  # of a small table, as Spark's own least partition

_WATCH: Final = (
    *("instance", "op_id", "kind", "unix_micros(start) AS start_us", f"{DEADLINE_US} AS deadline_us"),
    "coalesce(condition = 'any', false) AS any_of",
    "struct(condition, watches) AS version",
    "inline(watches) AS (key, progress)",
)
_EVENT: Final = ("instance", "key", "progress", "unix_micros(at) AS at_us")
# The key's hash is first: Spark sorts numbers far faster than texts, most of which begin alike.
_FIRST: Final = "min(at_us) OVER (PARTITION BY place, instance, key ORDER BY progress DESC) AS first"
_REACHED: Final = "CASE WHEN first <= start_us THEN start_us WHEN first {} deadline_us THEN first END AS reached"


def are_large(sizes: list[Size | None]) -> bool:
    """Return whether tables are so large that a shard with half of their rows may be too much for a task.

    For smaller tables, finding hot keys takes longer than cutting them saves.
    """
    return any(size is None for size in sizes) or sum(size.bytes for size in sizes if size) > _LARGE_BYTES


def are_moderate(sizes: Sequence[Size | None], partitions: int) -> bool:
    """Return whether groups of `COARSE` shards each fit into a task's memory, and are enough for all partitions."""
    known = [size.bytes for size in sizes if size is not None]
    return 0 < len(known) == len(sizes) and sum(known) <= _MODERATE_BYTES and partitions <= _MODERATE_PARTITIONS


class SmallTablePlan(NamedTuple):
    """The plan by which Spark alone resolves small tables."""

    partitions: int | None
    """Number of partitions of a shuffle; None if Spark itself adapts the number after the shuffle."""

    def repartition(self, table: DataFrame, *columns: str) -> DataFrame:
        """Shuffle a table by these columns."""
        number = [] if self.partitions is None else [self.partitions]
        return table.repartition(*number, *columns)  # type: ignore[arg-type]


def small_table_plan(spark: SparkSession, sizes: list[Size | None]) -> SmallTablePlan | None:
    """Return the plan to resolve tables of these sizes without a profile; None unless they are known to be small.

    Profiling such tables would take longer than all the rest. Rows that the plan itself holds count as small, however
    many: the driver holds one more copy each time that a plan names them. A table larger than Spark estimates is
    resolved all the same.
    """
    total = sum(_SMALL_BYTES + 1 if size is None else size.bytes for size in sizes)
    if total > _SMALL_BYTES and not all(size is not None and size.in_plan for size in sizes):
        return None
    if adapts_partitions(spark):
        return SmallTablePlan(None)
    return SmallTablePlan(min(shuffle_partitions(spark), 1 + int(total / _PARTITION_BYTES)))


def reached_by_spark(
    operations: DataFrame, events: DataFrame, deadline: Literal["inclusive", "exclusive"], plan: SmallTablePlan
) -> DataFrame:
    """Return each watch of valid operations with `reached`, null if not in time: `reaching.REACHED`, and more columns.

    O(n log n).
    """
    rows = operations.selectExpr(*_WATCH).unionByName(events.selectExpr(*_EVENT), allowMissingColumns=True)
    by_place = plan.repartition(rows.selectExpr("*", f"{PLACE} AS place"), "place")
    with_first = by_place.selectExpr("*", _FIRST).where("op_id IS NOT NULL")
    return with_first.selectExpr("*", _REACHED.format("<=" if deadline == "inclusive" else "<"))
