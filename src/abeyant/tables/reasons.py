"""Reasons for which a row is rejected, in order: the first that applies is reported.

One list, checked in three ways that the tests hold equal: here for Arrow, in SQL for Spark
(`pipeline.resolver.rejected`), row by row for Spark's streams.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DUPLICATE",
    "EVENT_REASONS",
    "NO_STEPS",
    "OPERATION_REASONS",
    "ROLE_REASONS",
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


def operation_reasons(how_long: str) -> tuple[str, ...]:
    """Return all reasons, for operations whose time limit is in the column `how_long`."""
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
