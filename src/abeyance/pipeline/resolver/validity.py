"""Which rows can be resolved, and why others cannot. What is set aside here is never silently lost: it is a table.

Every reason is a Spark expression that is compiled with the rest of the query. (A lambda over the watches would not be,
and would slow the whole table down: hence the sorted arrays, in which a null comes first.)
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.schemas import EVENTS, OPERATIONS, check_table

__all__ = [
    "DUPLICATE",
    "deadline_us",
    "event_reason",
    "invalid_events",
    "invalid_operations",
    "operation_reason",
    "valid_events",
    "valid_operations",
]

DUPLICATE: Final = "duplicate op_id"

_COLUMNS: Final = tuple(OPERATIONS.fieldNames())
# Groups of ids; those in which one id was seen twice are looked at closely. So many integers, at most, travel to
# every task, whatever the size of the table.
_ID_GROUPS: Final = 1 << 20


def invalid_operations(operations: DataFrame) -> DataFrame:
    """Return the rows that `resolve` sets aside, with all their columns and a `reason`. Lazy.

    The reasons: no `instance`, `op_id`, `start`, `timeout_ms` or `watches`; a watch without `key` or `required`; a
    negative `timeout_ms`; a deadline beyond the last timestamp; a `condition` other than `all` and `any` (null is
    `all`). Of several valid rows with one (instance, op_id) the first by `start` counts, then by `timeout_ms` and
    the further columns, and the others are duplicates. So `resolve(operations, events)` has exactly
    `operations.count() - invalid_operations(operations).count()` rows.
    """
    check_table(operations, OPERATIONS, "operations")
    reason = operation_reason()
    broken = operations.withColumn("reason", reason).where(F.col("reason").isNotNull())
    fine = operations.where(reason.isNull())
    repeated = _ranked(_suspects(fine)).where(F.col("_rank") > 1).drop("_rank")
    return broken.unionByName(repeated.withColumn("reason", F.lit(DUPLICATE)))


def invalid_events(events: DataFrame) -> DataFrame:
    """Return the events that `resolve` ignores, with all their columns and a `reason`: a column that is null. Lazy."""
    check_table(events, EVENTS, "events")
    reason = event_reason()
    return events.withColumn("reason", reason).where(F.col("reason").isNotNull())


def valid_operations(operations: DataFrame, *, unique_ids: bool) -> DataFrame:
    """Return the columns of `OPERATIONS` of each row that can be resolved, duplicates removed unless `unique_ids`."""
    check_table(operations, OPERATIONS, "operations")
    fine = operations.select(*_COLUMNS).where(operation_reason().isNull())
    if unique_ids:
        return fine
    first = _ranked(_suspects(fine)).where(F.col("_rank") == 1).drop("_rank")
    return fine.join(F.broadcast(_groups_of_repeated(fine)), _id_group() == F.col("_group"), "left_anti").union(first)


def valid_events(events: DataFrame) -> DataFrame:
    """Return the columns of `EVENTS` of each event that has them all."""
    check_table(events, EVENTS, "events")
    return events.select(*EVENTS.fieldNames()).dropna()


def deadline_us() -> Column:
    """Return the end of an operation's time, in microseconds; null where 64 bits do not hold it."""
    return F.try_add(F.unix_micros("start"), F.try_multiply(F.col("timeout_ms"), F.lit(1000)))


def event_reason() -> Column:
    """Return why an event is ignored, or null."""
    return F.coalesce(*(F.when(F.col(name).isNull(), F.lit(f"no {name}")) for name in EVENTS.fieldNames()))


def operation_reason() -> Column:
    """Return why an operation cannot be resolved, or null."""
    watches = F.col("watches")

    def lacks(part: str) -> Column:
        return F.get(F.sort_array(watches[part]), F.lit(0)).isNull()

    checks = {f"no {name}": F.col(name).isNull() for name in ("instance", "op_id", "start", "timeout_ms")} | {
        "timeout_ms is negative": F.col("timeout_ms") < 0,
        "the deadline is beyond the last timestamp": deadline_us().isNull(),
        "no watches": F.coalesce(F.size(watches), F.lit(0)) < 1,
        "a watch has no key": lacks("key"),
        "a watch has no required": lacks("required"),
        "condition is neither 'all' nor 'any'": ~F.col("condition").isin("all", "any"),
    }
    return F.coalesce(*(F.when(check, F.lit(reason)) for reason, check in checks.items()))


# -- duplicates, without sorting or shuffling the operations ---------------------------------------------------


def _id_hash() -> Column:
    return F.xxhash64("instance", "op_id")


def _id_group() -> Column:
    return F.pmod(_id_hash(), F.lit(_ID_GROUPS))


def _groups_of_repeated(operations: DataFrame) -> DataFrame:
    """Return the groups of ids in which some id's hash is there twice."""
    hashes = operations.select(_id_hash().alias("_hash"))
    twice = hashes.groupBy("_hash").agg(F.count(F.lit(1)).alias("_times")).where(F.col("_times") > 1)
    return twice.select(F.pmod("_hash", F.lit(_ID_GROUPS)).alias("_group")).distinct()


def _suspects(operations: DataFrame) -> DataFrame:
    """Return the operations of these groups: all the duplicates, and some that only share a group with them."""
    return operations.join(F.broadcast(_groups_of_repeated(operations)), _id_group() == F.col("_group"), "left_semi")


def _ranked(operations: DataFrame) -> DataFrame:
    """Number the rows of each id: 1 is the one that counts."""
    same_id = Window.partitionBy("instance", "op_id")
    order = ("start", "timeout_ms", "condition", "kind", "watches")
    return operations.withColumn("_rank", F.row_number().over(same_id.orderBy(*order)))
