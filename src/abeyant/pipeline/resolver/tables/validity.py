"""Which rows of a table can be resolved. What is set aside here is never silently lost: it is a table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.resolver.given import Given, as_dataframe, session_of
from abeyant.pipeline.resolver.reasons import DUPLICATE, EVENT_REASON, OPERATION_REASON
from abeyant.pipeline.resolver.tables.first_look import is_repeated, look_at
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE
from abeyant.pipeline.resolver.tables.small import few_partitions
from abeyant.pipeline.schemas import EVENTS, OPERATIONS, UNREADABLE, check_table, columns_of
from abeyant.pipeline.spark.plans import estimated_size
from abeyant.tables.reasons import reason_column

__all__ = ["distinct_operations", "invalid_events", "invalid_operations", "valid_events", "valid_operations"]


def invalid_operations(operations: Given) -> DataFrame:
    """Return the rows that `resolve` sets aside, with all their columns and a `reason`. Lazy.

    The reasons: a value that cannot be read as its column's type, with its text; no `instance`, `op_id`, `start`,
    `timeout_ms` or `watches`; a watch without `key` or `required`; a negative `timeout_ms`; a deadline beyond the last
    timestamp; a `condition` other than `all` and `any` (null is `all`). Of several valid rows with one (instance,
    op_id) the first by `start` counts, then by `timeout_ms` and the further columns, and the others are duplicates. So
    `resolve(operations, events)` has exactly `operations.count() - invalid_operations(operations).count()` rows. A
    table with a column `reason` of its own keeps it; ours is then `reason_2`.
    """
    table = as_dataframe(operations, "operations", session_of([operations]), whole=True)
    check_table(table, OPERATIONS, "operations")
    reason = reason_column(table.columns)
    judged = _judged(table, reason, OPERATION_REASON)
    table = table.drop(UNREADABLE)
    few = few_partitions(table.sparkSession, [estimated_size(table)])
    if few is not None:  # so it is read once
        ranked = _ranked(judged.repartition(*few, "instance", "op_id"), reason)
        duplicate = F.expr(f"coalesce({reason}, if(_rank > 1, '{DUPLICATE}', NULL))")
        return ranked.withColumn(reason, duplicate).where(f"{reason} IS NOT NULL").drop("_rank")
    broken = judged.where(f"{reason} IS NOT NULL")
    fine = table.where(f"({OPERATION_REASON}) IS NULL")
    duplicates = _ranked(_with_rivals(fine, table).where("_rivals")).where("_rank > 1").drop("_rank", "_rivals")
    return broken.unionByName(duplicates.withColumn(reason, F.lit(DUPLICATE)))


def invalid_events(events: Given) -> DataFrame:
    """Return the events that `resolve` ignores, with all their columns and a `reason`: a column that is null. Lazy."""
    table = as_dataframe(events, "events", session_of([events]), whole=True)
    check_table(table, EVENTS, "events")
    reason = reason_column(table.columns)
    return _judged(table, reason, EVENT_REASON).where(f"{reason} IS NOT NULL")


def _judged(table: DataFrame, column: str, reason: str) -> DataFrame:
    """Add why a row cannot be resolved: what a reader found unreadable in it, else the first reason that holds."""
    if UNREADABLE not in table.columns:
        return table.withColumn(column, F.expr(reason))
    return table.withColumn(column, F.coalesce(UNREADABLE, F.expr(reason))).drop(UNREADABLE)


def valid_operations(operations: DataFrame) -> DataFrame:
    """Return the columns of `OPERATIONS` of each row that can be resolved, duplicates among them."""
    return columns_of(operations, OPERATIONS).where(f"({OPERATION_REASON}) IS NULL")


def distinct_operations(operations: DataFrame) -> DataFrame:
    """Return the columns of `OPERATIONS` of each row that can be resolved, and of each id only the row that counts."""
    few = few_partitions(operations.sparkSession, [estimated_size(operations)])
    if few is not None:
        valid = valid_operations(operations).repartition(*few, "instance", "op_id")
        return _ranked(valid).where("_rank = 1").drop("_rank")
    fine = _with_rivals(valid_operations(operations), operations)
    first = _ranked(fine.where("_rivals")).where("_rank = 1").drop("_rank")
    return fine.where("NOT _rivals").union(first).drop("_rivals")


def valid_events(events: DataFrame) -> DataFrame:
    """Return the columns of `EVENTS` of each event that has them all."""
    check_table(events, EVENTS, "events")
    return columns_of(events, EVENTS).dropna()


# -- duplicates ----------------------------------------------------------------------------------------------------


def _with_rivals(rows: DataFrame, operations: DataFrame) -> DataFrame:
    """Add whether an id may be there twice among all operations."""
    seen = look_at(operations, sample=DEFAULT_SAMPLE).select(F.struct("*")).scalar()
    return rows.withColumn("_seen", seen).withColumn("_rivals", F.expr(is_repeated("_seen"))).drop("_seen")


def _ranked(operations: DataFrame, *apart: str) -> DataFrame:
    """Number the valid rows of each id: 1 is the one that counts. What differs in the columns `apart` is told apart."""
    order = "start, timeout_ms, condition, kind, watches"
    rows = ", ".join(("instance", "op_id", *apart))
    return operations.withColumn("_rank", F.expr(f"row_number() OVER (PARTITION BY {rows} ORDER BY {order})"))
