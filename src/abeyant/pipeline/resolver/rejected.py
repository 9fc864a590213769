"""Rejected rows: which rows cannot be resolved, why, and how they are kept, in whole tables and in streams.

A rejected row is never lost silently: it goes to a table of its own, with a `reason`. The words of the reasons are
those of `abeyant.tables`. Every reason is an SQL expression that Spark compiles with the rest of the query. (A lambda
over the watches would not be, and would slow the whole table down: hence the sorted arrays, where a null comes first.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from abeyant.pipeline.schemas import EVENTS
from abeyant.tables.reasons import DUPLICATE, EVENT_REASONS, OPERATION_REASONS

__all__ = [
    "DEADLINE_US",
    "DUPLICATE",
    "EVENT_REASON",
    "LATE",
    "OPERATION_REASON",
    "REJECTED_ROWS",
    "TIME_FORMAT",
    "rejected_rows_of",
]

DEADLINE_US: Final = "try_add(unix_micros(start), try_multiply(timeout_ms, 1000))"
"""The end of an operation's time, in microseconds; null where 64 bits do not hold it."""

_LACKS: Final = "if(size(watches) = 1, watches[0].{0}, get(sort_array(watches.{0}), 0)) IS NULL"
_HOLDS: Final = (
    *(f"{name} IS NULL" for name in ("instance", "op_id", "start", "timeout_ms")),
    "timeout_ms < 0",
    f"{DEADLINE_US} IS NULL",
    "coalesce(size(watches), 0) < 1",
    _LACKS.format("key"),
    _LACKS.format("required"),
    "condition NOT IN ('all', 'any')",
)


def _first_of(reasons: Sequence[str], holds: Sequence[str]) -> str:
    """Return the first of the reasons that holds, or null."""
    cases = (f"WHEN {check} THEN {_text(reason)}" for reason, check in zip(reasons, holds, strict=True))
    return f"CASE {' '.join(cases)} END"


def _text(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


OPERATION_REASON: Final = _first_of(OPERATION_REASONS, _HOLDS)
"""Why an operation cannot be resolved, or null."""

EVENT_REASON: Final = _first_of(EVENT_REASONS, [f"{name} IS NULL" for name in EVENTS.fieldNames()])
"""Why an event is ignored, or null."""

LATE: Final = "late: "
"""Begins the reasons of rows that come too late in a stream."""

TIME_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""The format of a time in a rejected row's JSON."""

REJECTED_ROWS: Final = StructType(
    [
        StructField("table", StringType()),  # `operations` or `events`
        StructField("reason", StringType()),  # as `invalid_operations` and `invalid_events`, or `late: ...`
        StructField("row", StringType()),  # the whole row, as JSON
    ]
)
"""The rejected rows of a stream: rows that have no part in any outcome, and why."""


def rejected_rows_of(answers: DataFrame) -> DataFrame:
    """Return the rejected rows among a stream's answers (`REJECTED_ROWS`)."""
    return answers.where(F.col("reason").isNotNull()).select(*REJECTED_ROWS.fieldNames())
