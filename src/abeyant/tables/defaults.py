"""What a column of operations and events is where a table has no such column: one list, for Arrow, Spark and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["CALLED", "DEFAULTS", "REJECT_REASON", "SHOWN", "unreadable"]

DEFAULTS: Final[Mapping[str, str | int | None]] = {
    "instance": "",
    "kind": None,
    "condition": "all",
    "required": 1,  # of a `key` that stands in place of `watches`
    "progress": 1,
}

REJECT_REASON: Final = "_unreadable"
"""The column that a reader adds for values that it cannot read: why the row is rejected, null where it is not."""

SHOWN: Final = 60
"""How many characters of a value that cannot be read its reason shows."""

CALLED: Final = {"timestamp": "a timestamp", "bigint": "a whole number", "string": "a text"}
"""What a value of a type of Spark is called in a reason."""


def unreadable(column: str, kind: str, text: str) -> str:
    """Return why a row is rejected whose value in a column is not of its type, a key of `CALLED`."""
    return f"{column} is not {CALLED[kind]}: {text[:SHOWN]}"
