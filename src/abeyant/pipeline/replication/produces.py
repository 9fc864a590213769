"""Find where appended batches end, and the produces that wait for high watermarks to pass them.

A response has a batch's first offset, not its last. But batches are fetched whole, so some batch ends at each offset
that a request log shows: where another batch begins, a follower fetches, or a high watermark is. We assume that a batch
ends at the least such offset after its first offset. If it ends earlier, no fetch and no high watermark was in between,
so the prediction is the same. If no offset follows, since no follower fetched again, we assume a batch of one record.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import PRODUCES, REPLICATION
from abeyant.pipeline.spark.columns import check_table

__all__ = ["acks_all_produces", "any_acks_all", "appended"]

_TELL_OFFSETS: Final = ("appended", "fetched", "watermark")


def appended(replication: DataFrame) -> DataFrame:
    """Return the facts on appended batches, with a column `required`: the offset after the end of the batch."""
    check_table(replication, REPLICATION, "replication")
    seen = replication.where(F.col("what").isin(*_TELL_OFFSETS)).select("key", "offset").distinct()
    following = F.lead("offset").over(Window.partitionBy("key").orderBy("offset"))
    next_seen = seen.select("key", "offset", F.coalesce(following, F.col("offset") + 1).alias("required"))
    return replication.where(F.col("what") == "appended").join(next_seen, ["key", "offset"])


def any_acks_all(replication: DataFrame) -> bool:
    """Return whether `acks_all_produces` has a row, without a shuffle."""
    return not replication.where((F.col("what") == "appended") & F.col("timeout_ms").isNotNull()).isEmpty()


def acks_all_produces(replication: DataFrame) -> DataFrame:
    """Return the produces with acks=all that were appended, as operations on high watermarks (`schemas.PRODUCES`).

    A watch's key is a partition, and `required` the offset after the produce's batch there. A produce completes when
    `all` its watches are reached. Produces that were refused at once (NOT_ENOUGH_REPLICAS) never waited: left out.
    """
    waited = appended(replication).where(F.col("timeout_ms").isNotNull())
    same = ("timeout_ms", "outcome", "waited_ms")
    operations = waited.groupBy("instance", "op_id").agg(
        F.min("at").alias("start"),
        F.sort_array(F.collect_list(F.struct("key", "required"))).alias("watches"),
        *(F.first(name).alias(name) for name in same),
    )
    fixed = {"kind": F.lit("PRODUCE"), "condition": F.lit("all")}
    return operations.withColumns(fixed).select(*PRODUCES.fieldNames())
