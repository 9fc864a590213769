"""Split a table into rows that can be resolved, and rejected rows, which get a `reason` and are never silently lost."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from abeyant.pipeline.resolver.given import Given, as_dataframe, session_of
from abeyant.pipeline.resolver.rejected import DUPLICATE, EVENT_REASON, operation_reason
from abeyant.pipeline.resolver.tables.profile import is_repeated, profile_ids
from abeyant.pipeline.resolver.tables.small import small_table_plan
from abeyant.pipeline.schemas import EVENTS, FURTHER, HOW_LONG, REJECT_REASON
from abeyant.pipeline.sources.tables import complete
from abeyant.pipeline.spark.columns import check_table, columns_of, operations_schema
from abeyant.pipeline.spark.plans import estimated_size
from abeyant.tables.reasons import reason_column

__all__ = [
    "distinct_operations",
    "invalid_events",
    "invalid_operations",
    "rejected_events",
    "rejected_operations",
    "valid_events",
    "valid_operations",
]


def rejected_operations(operations: Given) -> DataFrame:
    """Return the rows that `resolve` rejects, with all their columns and a `reason`. Lazy.

    The reasons: a value that cannot be read as its column's type, with its text; no `instance`, `op_id`, `start`,
    `timeout_ms` (or `timeout`, or `deadline`) or `watches`; a watch without `key` or `required`, or with an unknown
    `role`; several watches that pause; a negative time-out; a deadline beyond the last timestamp; a `condition` other
    than `all`, `any` and `then` (null is `all`). Several valid rows with the same (instance, op_id) are sorted by
    `start`, `timeout_ms` and the further columns; all but the first are duplicates. So `resolve(operations, events)`
    has exactly `operations.count() - rejected_operations(operations).count()` rows. A table with a column `reason` of
    its own keeps it; ours is then `reason_2`.
    """
    table = complete(as_dataframe(operations, "operations", session_of([operations]), whole=True), "operations")
    schema = operations_schema(table)
    check_table(table, schema, "operations")
    reason, wrong = reason_column(table.columns), operation_reason(_with_reject_reason(schema, table))
    with_reason = _judged(table, reason, wrong)
    table = table.drop(REJECT_REASON)
    plan = small_table_plan(table.sparkSession, [estimated_size(table)])
    if plan is not None:  # a plan that reads the table once
        ranked = _ranked(plan.repartition(with_reason, "instance", "op_id"), schema, reason)
        duplicate = F.expr(f"coalesce({reason}, if(_rank > 1, '{DUPLICATE}', NULL))")
        return ranked.withColumn(reason, duplicate).where(f"{reason} IS NOT NULL").drop("_rank")
    broken = with_reason.where(f"{reason} IS NOT NULL")
    fine = with_reason.where(f"{reason} IS NULL").drop(reason)
    duplicates = _ranked(_with_rivals(fine, table).where("_rivals"), schema).where("_rank > 1").drop("_rank", "_rivals")
    return broken.unionByName(duplicates.withColumn(reason, F.lit(DUPLICATE)))


def rejected_events(events: Given) -> DataFrame:
    """Return the events that `resolve` rejects, with all columns and a `reason`: a null or unreadable value. Lazy."""
    table = complete(as_dataframe(events, "events", session_of([events]), whole=True), "events")
    check_table(table, EVENTS, "events")
    reason = reason_column(table.columns)
    return _judged(table, reason, EVENT_REASON).where(f"{reason} IS NOT NULL")


# Their former names
invalid_operations = rejected_operations
invalid_events = rejected_events


def _judged(table: DataFrame, column: str, reason: str) -> DataFrame:
    """Add the reason to reject a row, null if valid: `REJECT_REASON`, which a reader has added, or else `reason`."""
    if REJECT_REASON not in table.columns:
        return table.withColumn(column, F.expr(reason))
    return table.withColumn(column, F.coalesce(REJECT_REASON, F.expr(reason))).drop(REJECT_REASON)


def valid_operations(operations: DataFrame) -> DataFrame:
    """Return the valid operations, duplicates included, with the columns of `operations_schema`."""
    schema = _with_reject_reason(operations_schema(operations), operations)
    return columns_of(operations, schema).where(f"({operation_reason(schema)}) IS NULL").drop(REJECT_REASON)


def distinct_operations(operations: DataFrame) -> DataFrame:
    """Return the valid operations, of each id only the row that counts, with the columns of `operations_schema`."""
    schema = operations_schema(operations)
    plan = small_table_plan(operations.sparkSession, [estimated_size(operations)])
    if plan is not None:
        valid = plan.repartition(valid_operations(operations), "instance", "op_id")
        return _ranked(valid, schema).where("_rank = 1").drop("_rank")
    fine = _with_rivals(valid_operations(operations), operations)
    first = _ranked(fine.where("_rivals"), schema).where("_rank = 1").drop("_rank")
    return fine.where("NOT _rivals").union(first).drop("_rivals")


def valid_events(events: DataFrame) -> DataFrame:
    """Return the events without nulls, with the columns of `EVENTS`."""
    check_table(events, EVENTS, "events")
    return columns_of(events, EVENTS).dropna()


# -- duplicates ----------------------------------------------------------------------------------------------------


def _with_rivals(rows: DataFrame, operations: DataFrame) -> DataFrame:
    """Add `_rivals`: whether the row's id may be repeated among all operations."""
    profile = profile_ids(operations).select(F.struct("*")).scalar()
    with_profile = rows.withColumn("_profile", profile)
    return with_profile.withColumn("_rivals", F.expr(is_repeated("_profile"))).drop("_profile")


def _with_reject_reason(schema: StructType, table: DataFrame) -> StructType:
    """Return the schema, with `REJECT_REASON` if needed: an unreadable `extend` is a null, which is valid in itself."""
    if "extend" in schema.fieldNames() and REJECT_REASON in table.columns:
        return StructType([*schema.fields, StructField(REJECT_REASON, StringType())])
    return schema


def _ranked(operations: DataFrame, schema: StructType, *columns: str) -> DataFrame:
    """Add `_rank` to valid rows: of rows with one id, and equal `columns`, the row with rank 1 counts."""
    names = schema.fieldNames()
    duration = next(name for name in HOW_LONG if name in names)
    order = ", ".join(("start", duration, "condition", "kind", *(n for n in FURTHER if n in names), "watches"))
    rows = ", ".join(("instance", "op_id", *columns))
    return operations.withColumn("_rank", F.expr(f"row_number() OVER (PARTITION BY {rows} ORDER BY {order})"))
