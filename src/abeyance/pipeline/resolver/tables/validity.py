"""Which rows of a table can be resolved. What is set aside here is never silently lost: it is a table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.resolver.reasons import DUPLICATE, EVENT_REASON, OPERATION_REASON
from abeyance.pipeline.resolver.tables.first_look import GROUP, look_at, repeated_groups
from abeyance.pipeline.schemas import EVENTS, OPERATIONS, check_table
from abeyance.tables.reasons import reason_column

__all__ = ["invalid_events", "invalid_operations", "valid_events", "valid_operations"]


def invalid_operations(operations: DataFrame) -> DataFrame:
    """Return the rows that `resolve` sets aside, with all their columns and a `reason`. Lazy.

    The reasons: no `instance`, `op_id`, `start`, `timeout_ms` or `watches`; a watch without `key` or `required`; a
    negative `timeout_ms`; a deadline beyond the last timestamp; a `condition` other than `all` and `any` (null is
    `all`). Of several valid rows with one (instance, op_id) the first by `start` counts, then by `timeout_ms` and
    the further columns, and the others are duplicates. So `resolve(operations, events)` has exactly
    `operations.count() - invalid_operations(operations).count()` rows. A table with a column `reason` of its own keeps
    it; ours is then `reason_2`.
    """
    check_table(operations, OPERATIONS, "operations")
    reason = reason_column(operations.columns)
    broken = operations.withColumn(reason, F.expr(OPERATION_REASON)).where(f"{reason} IS NOT NULL")
    fine = operations.where(f"({OPERATION_REASON}) IS NULL")
    repeated = repeated_groups(look_at(operations, fraction=None))
    suspects = _joined_to_repeated(fine, repeated, "left_semi")
    duplicates = _ranked(suspects).where("_rank > 1").drop("_rank")
    return broken.unionByName(duplicates.withColumn(reason, F.lit(DUPLICATE)))


def invalid_events(events: DataFrame) -> DataFrame:
    """Return the events that `resolve` ignores, with all their columns and a `reason`: a column that is null. Lazy."""
    check_table(events, EVENTS, "events")
    reason = reason_column(events.columns)
    return events.withColumn(reason, F.expr(EVENT_REASON)).where(f"{reason} IS NOT NULL")


def valid_operations(operations: DataFrame, repeated: DataFrame | None) -> DataFrame:
    """Return the columns of `OPERATIONS` of each row that can be resolved, without duplicates.

    `repeated` names the groups of ids in which such are: see `first_look`; None promises that there are none.
    """
    fine = operations.select(*OPERATIONS.fieldNames()).where(f"({OPERATION_REASON}) IS NULL")
    if repeated is None:
        return fine
    first = _ranked(_joined_to_repeated(fine, repeated, "left_semi")).where("_rank = 1").drop("_rank")
    return _joined_to_repeated(fine, repeated, "left_anti").union(first)


def valid_events(events: DataFrame) -> DataFrame:
    """Return the columns of `EVENTS` of each event that has them all."""
    check_table(events, EVENTS, "events")
    return events.select(*EVENTS.fieldNames()).dropna()


# -- duplicates ----------------------------------------------------------------------------------------------------


def _joined_to_repeated(operations: DataFrame, repeated: DataFrame, how: str) -> DataFrame:
    return operations.join(F.broadcast(repeated), F.expr(f"_group = {GROUP}"), how)


def _ranked(operations: DataFrame) -> DataFrame:
    """Number the rows of each id: 1 is the one that counts."""
    order = "start, timeout_ms, condition, kind, watches"
    return operations.withColumn("_rank", F.expr(f"row_number() OVER (PARTITION BY instance, op_id ORDER BY {order})"))
