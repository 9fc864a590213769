"""Which rows can be resolved, and why others cannot. What is set aside here is never silently lost: it is a table.

Every reason is an SQL expression that Spark compiles with the rest of the query. (A lambda over the watches would not
be, and would slow the whole table down: hence the sorted arrays, in which a null comes first.)
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.resolver.first_look import GROUP, look_at, repeated_groups
from abeyance.pipeline.schemas import EVENTS, OPERATIONS, check_table

__all__ = [
    "DEADLINE_US",
    "DUPLICATE",
    "EVENT_REASON",
    "OPERATION_REASON",
    "invalid_events",
    "invalid_operations",
    "valid_events",
    "valid_operations",
]

DUPLICATE: Final = "duplicate op_id"

DEADLINE_US: Final = "try_add(unix_micros(start), try_multiply(timeout_ms, 1000))"
"""The end of an operation's time, in microseconds; null where 64 bits do not hold it."""

_LACKS: Final = "if(size(watches) = 1, watches[0].{0}, get(sort_array(watches.{0}), 0)) IS NULL"
_CHECKS: Final = {f"no {name}": f"{name} IS NULL" for name in ("instance", "op_id", "start", "timeout_ms")} | {
    "timeout_ms is negative": "timeout_ms < 0",
    "the deadline is beyond the last timestamp": f"{DEADLINE_US} IS NULL",
    "no watches": "coalesce(size(watches), 0) < 1",
    "a watch has no key": _LACKS.format("key"),
    "a watch has no required": _LACKS.format("required"),
    "condition is neither 'all' nor 'any'": "condition NOT IN ('all', 'any')",
}


def _first_of(checks: dict[str, str]) -> str:
    """Return the reason of the first check that holds, or null."""
    cases = (f"WHEN {check} THEN {_text(reason)}" for reason, check in checks.items())
    return f"CASE {' '.join(cases)} END"


def _text(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


OPERATION_REASON: Final = _first_of(_CHECKS)
"""Why an operation cannot be resolved, or null."""

EVENT_REASON: Final = _first_of({f"no {name}": f"{name} IS NULL" for name in EVENTS.fieldNames()})
"""Why an event is ignored, or null."""


def invalid_operations(operations: DataFrame) -> DataFrame:
    """Return the rows that `resolve` sets aside, with all their columns and a `reason`. Lazy.

    The reasons: no `instance`, `op_id`, `start`, `timeout_ms` or `watches`; a watch without `key` or `required`; a
    negative `timeout_ms`; a deadline beyond the last timestamp; a `condition` other than `all` and `any` (null is
    `all`). Of several valid rows with one (instance, op_id) the first by `start` counts, then by `timeout_ms` and
    the further columns, and the others are duplicates. So `resolve(operations, events)` has exactly
    `operations.count() - invalid_operations(operations).count()` rows.
    """
    check_table(operations, OPERATIONS, "operations")
    broken = operations.withColumn("reason", F.expr(OPERATION_REASON)).where("reason IS NOT NULL")
    fine = operations.where(f"({OPERATION_REASON}) IS NULL")
    repeated = repeated_groups(look_at(operations, fraction=None))
    suspects = _joined_to_repeated(fine, repeated, "left_semi")
    duplicates = _ranked(suspects).where("_rank > 1").drop("_rank")
    return broken.unionByName(duplicates.withColumn("reason", F.lit(DUPLICATE)))


def invalid_events(events: DataFrame) -> DataFrame:
    """Return the events that `resolve` ignores, with all their columns and a `reason`: a column that is null. Lazy."""
    check_table(events, EVENTS, "events")
    return events.withColumn("reason", F.expr(EVENT_REASON)).where("reason IS NOT NULL")


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
