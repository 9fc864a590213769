"""The reasons for which a row is rejected, in order: the first that applies is reported.

One list, checked in three ways that the tests hold equal: here for Arrow, in SQL for Spark
(`pipeline.resolver.rejected`), row by row for Spark's streams.
"""

from __future__ import annotations

import re
from typing import Final

from abeyant.errors import SchemaError

__all__ = [
    "DUPLICATE",
    "EVENT_REASONS",
    "NO_STEPS",
    "OPERATION_REASONS",
    "ROLE_REASONS",
    "constant_error",
    "mend",
    "operation_reasons",
    "reason_column",
]

OPERATION_REASONS: Final = (
    "no instance",
    "no op_id",
    "no start",
    "no timeout_ms",
    "timeout_ms is negative",
    "the deadline is beyond the last timestamp",
    "no watches",
    "a watch has no key",
    "a watch has no required",
    "condition is none of 'all', 'any' and 'then'",
)
ROLE_REASONS: Final = ("a watch has an unknown role", "several watches pause it", "extend cannot be read")
"""Further reasons for watches with roles."""
NO_STEPS: Final = "condition is neither 'all' nor 'any' (in a stream, 'then' needs count='after_start', its meaning)"
"""Replaces the last reason in a stream with default options, which has no steps."""
DUPLICATE: Final = "duplicate op_id"
EVENT_REASONS: Final = ("no instance", "no key", "no at", "no progress")

_BUSINESS: Final = re.compile(r"is not a duration.*\b(business|working|work|office)\b", re.IGNORECASE)
_MENDS: Final = {
    "is not a duration": "write durations as '15 min', '1 h 30 min' or 'PT15M'",
    "is not a whole number": "round the column, or count amounts in a smaller unit, such as cents",
    "is negative": "check which times it was computed from",
    "is before start": "check that the columns are not exchanged",
    "is beyond the last timestamp": "check the unit: timeout_ms has milliseconds",
    DUPLICATE: "give each operation an op_id of its own",
    "no ": "check the column's name, and what the conversion before made null",
}


def mend(reason: str) -> str:
    """Return what to do about rows that are rejected for this reason, to be appended; '' where the reason is enough."""
    if _BUSINESS.search(reason):
        hours = "calendar=Calendar('Mon-Fri 09:00-17:00'), at the command line --calendar 'Mon-Fri 09:00-17:00'"
        return f"; write '2 h' or '2 days', and say apart which hours count: {hours}"
    return next((f"; {said}" for part, said in _MENDS.items() if part in reason), "")


def constant_error(name: str, reason: str) -> SchemaError:
    """Return the error for a duration that is a constant and cannot be read, for this reason."""
    return SchemaError(f"{name}: {reason}, in every row{mend(reason)}")


def operation_reasons(how_long: str) -> tuple[str, ...]:
    """Return all reasons to reject an operation, where its time limit is in the column `how_long`."""
    reasons = [reason.replace("timeout_ms", how_long) for reason in OPERATION_REASONS]
    if how_long == "deadline":
        reasons[reasons.index("deadline is negative")] = "deadline is before start"
    return *reasons, *ROLE_REASONS


def reason_column(columns: list[str]) -> str:
    """Return a name for the reason's column: `reason`, or `reason_2` and so on if the table has such columns."""
    taken = {name.lower() for name in columns}
    number = 1
    while (name := "reason" if number == 1 else f"reason_{number}") in taken:
        number += 1
    return name
