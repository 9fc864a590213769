"""Running totals over one huge, ordered group without bringing it to one task.

A window over the group would sort all of it on one core. Instead the order is cut into buckets: each bucket
takes its own running total, the buckets' totals (few) take theirs, and each bucket adds what came before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["with_running_totals"]


def with_running_totals(
    rows: DataFrame,
    group: Sequence[str],
    bucket: str,
    order: str,
    sums: Mapping[str, Column],
    totals: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Add to each row, for each of `sums`, its total over the group's rows *before* this one.

    `bucket` is a column that never decreases as `order` grows, and `order` is unique within the group. `totals`
    are sums over the whole group, added to every row too: they cost nothing more.
    """
    totals = totals or {}
    buckets = rows.groupBy(*group, bucket).agg(
        *(F.sum(value).alias(f"_in_{name}") for name, value in (*sums.items(), *totals.items()))
    )
    whole = Window.partitionBy(*group)
    earlier = whole.orderBy(bucket).rowsBetween(Window.unboundedPreceding, -1)
    buckets = buckets.select(
        *group,
        bucket,
        *(F.sum(f"_in_{name}").over(earlier).alias(f"_before_{name}") for name in sums),
        *(F.sum(f"_in_{name}").over(whole).alias(name) for name in totals),
    )
    inside = Window.partitionBy(*group, bucket).orderBy(order).rowsBetween(Window.unboundedPreceding, -1)
    within = rows.select("*", *(F.sum(value).over(inside).alias(f"_within_{name}") for name, value in sums.items()))
    # Null, not 0, is the sum of no row; and null never meets null in a join: the group's columns are not null.
    return within.join(buckets, [*group, bucket]).select(
        *rows.columns,
        *(
            (F.coalesce(f"_before_{name}", F.lit(0)) + F.coalesce(f"_within_{name}", F.lit(0))).alias(name)
            for name in sums
        ),
        *totals,
    )
