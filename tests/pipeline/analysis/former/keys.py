"""The keys that wait longest and expire most."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import BY_KEY, OPERATIONS, check_table
from pipeline.analysis.former.ranked import checked, percentiles, rank
from pipeline.analysis.former.summary import expired_share

__all__ = ["by_key"]


def by_key(operations: DataFrame) -> DataFrame:
    """Count the operations of each (instance, kind, key) and rank their waits (`schemas.BY_KEY`).

    An operation that watches several keys counts under each; one that names none counts under none.
    """
    check_table(operations, OPERATIONS.__class__([OPERATIONS["watches"]]), "operations")
    watched = checked(operations).select(
        "instance",
        "kind",
        F.explode(F.array_distinct(F.transform("watches", lambda watch: watch["key"]))).alias("key"),
        "wait_us",
        "outcome",
    )
    ranked = rank(watched, ("instance", "kind", "key"))
    return (
        ranked.rows.groupBy(*ranked.group)
        .agg(
            *(F.sum(name).alias(name) for name in ("operations", "completed", "expired")),
            *percentiles(),
            (F.sum(F.col("wait_us") * F.col("operations")) / 1000).alias("total_waited_ms"),
        )
        .withColumn("expired_share", expired_share())
        .select(*BY_KEY.fieldNames())
    )
