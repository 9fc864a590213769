"""Why a row cannot be resolved, in whole tables and in streams.

Every reason is an SQL expression that Spark compiles with the rest of the query. (A lambda over the watches would not
be, and would slow the whole table down: hence the sorted arrays, in which a null comes first.)
"""

from __future__ import annotations

from typing import Final

from abeyance.pipeline.schemas import EVENTS

__all__ = ["DEADLINE_US", "DUPLICATE", "EVENT_REASON", "OPERATION_REASON"]

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
