"""Rejected rows of whole tables and streams: the reasons, as SQL, and the format of the rows.

A rejected row is never lost silently: it goes to a table of its own, with a `reason`. The texts of the reasons are
the same as in `abeyant.tables`. Every reason is an SQL expression that Spark compiles with the rest of the query.
(Spark does not compile lambdas, and one over the watches would slow down the whole table. So arrays are sorted instead:
a null then comes first.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.schemas import EVENTS, HOW_LONG, OPERATIONS, REJECT_REASON, REJECTED_ROWS
from abeyant.tables.reasons import DUPLICATE, EVENT_REASONS, NO_STEPS, OPERATION_REASONS, operation_reasons
from abeyant.tables.rules import ALL_CONDITIONS, CONDITIONS, ROLES

__all__ = [
    "DEADLINE_US",
    "DUPLICATE",
    "EVENT_REASON",
    "LATE",
    "OPERATION_REASON",
    "REJECTED_ROWS",
    "TIMEOUT_US",
    "TIME_FORMAT",
    "deadline_us",
    "operation_reason",
    "rejected_rows_of",
]

DEADLINE_US: Final = "try_add(unix_micros(start), try_multiply(timeout_ms, 1000))"
"""SQL expression of an operation's deadline in microseconds since 1970; null if it does not fit in 64 bits."""

TIMEOUT_US: Final = "unix_micros(timestamp_micros(0) + timeout)"
"""SQL expression of the column `timeout`, an interval, in microseconds."""
_DEADLINES_US: Final = {
    "timeout_ms": DEADLINE_US,
    "timeout": f"try_add(unix_micros(start), {TIMEOUT_US})",
    "deadline": "unix_micros(deadline)",
}
_NEGATIVE: Final = {
    "timeout_ms": "timeout_ms < 0",
    "timeout": "timeout < INTERVAL '0' SECOND",
    "deadline": "deadline < start",
}
_LACKS: Final = "if(size(watches) = 1, watches[0].{0}, get(sort_array(watches.{0}), 0)) IS NULL"
# Spark compiles array_except and array_remove, but not a lambda.
_UNKNOWN_ROLE: Final = f"size(array_except(watches.role, array({', '.join(map(repr, ROLES))}, NULL))) > 0"
_PAUSES: Final = "size(watches) - size(array_remove(watches.role, 'pause'))"


def deadline_us(columns: Sequence[str]) -> str:
    """Return the SQL expression of an operation's deadline in microseconds, for operations with these columns."""
    return _DEADLINES_US[next(name for name in HOW_LONG if name in columns)]


def operation_reason(schema: StructType, conditions: Sequence[str] = ALL_CONDITIONS) -> str:
    """Return SQL for the reason to reject an operation, null if valid; `schema` comes from `operations_schema`."""
    names = schema.fieldNames()
    how_long = next(name for name in HOW_LONG if name in names)
    roles = "role" in schema["watches"].dataType.simpleString()
    pauses = [_PAUSES] * roles + ["if(pause_key IS NULL, 0, 1)"] * ("pause_key" in names)
    holds = (
        *(f"{name} IS NULL" for name in ("instance", "op_id", "start", how_long)),
        _NEGATIVE[how_long],
        f"{_DEADLINES_US[how_long]} IS NULL",
        "coalesce(size(watches), 0) < 1",
        _LACKS.format("key"),
        _LACKS.format("required"),
        f"condition NOT IN ({', '.join(map(_text, conditions))})",
        _UNKNOWN_ROLE if roles else "",
        f"{' + '.join(pauses)} > 1" if roles else "",
        f"{REJECT_REASON} IS NOT NULL" if REJECT_REASON in names else "",
    )
    reasons = zip(operation_reasons(how_long), holds, strict=True)
    checks = [(reason, check) for reason, check in reasons if check]
    if "then" not in conditions:
        checks = [(NO_STEPS if reason == OPERATION_REASONS[-1] else reason, check) for reason, check in checks]
    return _first_of([reason for reason, _ in checks], [check for _, check in checks])


def _first_of(reasons: Sequence[str], holds: Sequence[str]) -> str:
    """Return the SQL expression of the first reason whose condition (`holds`) is true, or null."""
    cases = (f"WHEN {check} THEN {_text(reason)}" for reason, check in zip(reasons, holds, strict=True))
    return f"CASE {' '.join(cases)} END"


def _text(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


OPERATION_REASON: Final = operation_reason(OPERATIONS, CONDITIONS)
"""SQL expression of the reason why a stream without options rejects an operation; null for a valid operation."""

EVENT_REASON: Final = _first_of(EVENT_REASONS, [f"{name} IS NULL" for name in EVENTS.fieldNames()])
"""SQL expression of the reason why an event is rejected; null for a valid event."""

LATE: Final = "late: "
"""Prefix of the reasons of late rows in a stream."""

TIME_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""The format of a time in a rejected row's JSON."""


def rejected_rows_of(answers: DataFrame) -> DataFrame:
    """Return the rejected rows (`schemas.REJECTED_ROWS`) of `answers`, the stream of `resolve_stream`."""
    return answers.where(F.col("reason").isNotNull()).select(*REJECTED_ROWS.fieldNames())
