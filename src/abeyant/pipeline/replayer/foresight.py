"""Resolve operations with a longer time-out than their own; the outcomes under shorter time-outs follow from that."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.resolver.tables import resolve
from abeyant.pipeline.resolver.tables.validity import distinct_operations
from abeyant.pipeline.schemas import EVENTS, OPERATIONS
from abeyant.pipeline.spark.columns import check_table, columns_of

__all__ = ["watched_for"]


def watched_for(
    operations: DataFrame, events: DataFrame, asked_ms: int, *, beyond_ms: int = 0, keys: bool
) -> DataFrame:
    """Return the valid operations with their own `timeout_ms`, but `outcome` and `waited_ms` under a longer time-out.

    The longer time-out is the greater of `asked_ms` and the operation's own, plus `beyond_ms`. With `keys`, the result
    also has the column `watches`.
    """
    check_table(operations, OPERATIONS, "operations")
    check_table(events, EVENTS, "events")
    # The greatest of a null and a number is the number. A negative one stays, and is rejected.
    longest = F.expr(f"if(timeout_ms < 0, timeout_ms, greatest(timeout_ms, {asked_ms}L) + {beyond_ms}L)")
    # An outcome keeps the kind of its operation, and not the time-out; so that travels with the kind.
    both = F.concat_ws(":", F.coalesce(F.col("timeout_ms").cast("string"), F.lit("")), F.coalesce("kind", F.lit("")))
    longer = columns_of(operations, OPERATIONS).withColumns({"kind": both, "timeout_ms": longest})
    outcomes = resolve(longer, events)
    own_timeout = F.substring_index("kind", ":", 1)
    result = outcomes.select(
        "instance",
        "op_id",
        F.expr("substr(kind, locate(':', kind) + 1)").alias("kind"),
        F.timestamp_micros(F.unix_micros("at") - F.round(F.col("waited_ms") * 1000).cast("long")).alias("start"),
        own_timeout.try_cast("long").alias("timeout_ms"),
        "outcome",
        "waited_ms",
    )
    if not keys:
        return result
    valid = distinct_operations(longer)
    return result.join(valid.select("instance", "op_id", "watches"), ["instance", "op_id"])
