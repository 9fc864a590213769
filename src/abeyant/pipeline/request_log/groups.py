"""Complete operations of consumer groups with what only other lines of the log have."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import OPERATIONS
from abeyant.pipeline.spark.columns import check_table

__all__ = ["with_sync_limits"]

_JOIN: Final = "JOIN_GROUP"
_SYNC: Final = "SYNC_GROUP"


def with_sync_limits(operations: DataFrame) -> DataFrame:
    """Give each SYNC_GROUP of a request log its time-out: the longest rebalance time-out of its group's members.

    A SYNC_GROUP has no time-out of its own; the JOIN_GROUPs of the same group and broker have the rebalance time-out.
    Without such a JOIN_GROUP in the log, the time-out stays null. All other operations, and all outcomes, are
    unchanged: the time-out alone does not show how a SYNC_GROUP with an error in its response ended.
    """
    check_table(operations, OPERATIONS, "operations")
    group = F.regexp_replace(F.get("watches", F.lit(0))["key"], "^(join|sync)-", "")
    joined = operations.where(F.col("kind") == _JOIN).groupBy("instance", group.alias("_group"))
    limits = joined.agg(F.max("timeout_ms").alias("_limit_ms"))
    limit = F.when(F.col("kind") == _SYNC, F.col("_limit_ms")).otherwise(F.col("timeout_ms"))
    of_group = operations.withColumn("_group", F.when(F.col("kind") == _SYNC, group))
    found = of_group.join(F.broadcast(limits), ["instance", "_group"], "left").withColumn("timeout_ms", limit)
    return found.select(*operations.columns)
