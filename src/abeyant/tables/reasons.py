"""The reasons for which a row is rejected, in order: the first reason that applies is reported.

Three implementations check this one list, and tests keep them equal: `validity` for Arrow, SQL for Spark
(`pipeline.resolver.rejected`), and a check row by row for Spark's streams.
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
"""Further reasons to reject an operation, for its watches with roles."""
NO_STEPS: Final = "condition is neither 'all' nor 'any' (in a stream, 'then' needs the option count='after_start')"
"""Replaces the last of `OPERATION_REASONS` in a stream with default options, which does not support 'then'."""
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
    "no ": "check the column's name, and whether an earlier conversion made values null",
}


def mend(reason: str) -> str:
    """Return advice to append to a rejection's reason: `; write durations as ...`; '' where the reason is enough."""
    if _BUSINESS.search(reason):
        hours = "calendar=Calendar('Mon-Fri 09:00-17:00'), at the command line --calendar 'Mon-Fri 09:00-17:00'"
        return f"; write '2 h' or '2 days', and give the hours that count as a calendar: {hours}"
    return next((f"; {said}" for part, said in _MENDS.items() if part in reason), "")


def constant_error(name: str, reason: str) -> SchemaError:
    """Return the error for a column of durations that has the same unreadable text in every row, for this reason."""
    return SchemaError(f"{name}: {reason}, in every row{mend(reason)}")


def operation_reasons(how_long: str) -> tuple[str, ...]:
    """Return all reasons to reject an operation whose time limit is in the column `how_long`."""
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
