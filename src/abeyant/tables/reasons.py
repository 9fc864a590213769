"""Why a row cannot be resolved: the words, and their order. The first that holds is told.

Here for Arrow, in SQL for Spark (`pipeline.resolver.rejected`), row by row for streams of it: one list, several ways to
look. The tests hold them equal.
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
"""Why a row is rejected besides, where watches have roles."""
NO_STEPS: Final = "condition is neither 'all' nor 'any' (in a stream, 'then' needs count='after_start', its meaning)"
"""In place of the last, where a stream asks the plain question: it has no steps."""
DUPLICATE: Final = "duplicate op_id"
EVENT_REASONS: Final = ("no instance", "no key", "no at", "no progress")


def operation_reasons(how_long: str) -> tuple[str, ...]:
    """Return all reasons, of operations with one of the columns `timeout_ms`, `timeout` and `deadline`."""
    reasons = [reason.replace("timeout_ms", how_long) for reason in OPERATION_REASONS]
    if how_long == "deadline":
        reasons[reasons.index("deadline is negative")] = "deadline is before start"
    return *reasons, *ROLE_REASONS


def reason_column(columns: list[str]) -> str:
    """Name the column that tells the reason: `reason`, or `reason_2` and so on where the table has one of its own."""
    taken = {name.lower() for name in columns}
    number = 1
    while (name := "reason" if number == 1 else f"reason_{number}") in taken:
        number += 1
    return name
