"""What a column of operations and events is where a table has no such column: one list, for Arrow, Spark and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from abeyant.errors import SchemaError

__all__ = ["CALLED", "DEFAULTS", "REJECT_REASON", "SHOWN", "check_instances", "unreadable"]

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


def check_instances(operations: Iterable[str], events: Iterable[str]) -> None:
    """Raise `SchemaError` where only one table has the column `instance`, in any case; the arguments are column names.

    With the default in the other table no key would match, and every operation would expire.
    """
    having = {
        name: "instance" in {column.lower() for column in columns}
        for name, columns in (("operations", operations), ("events", events))
    }
    if len({*having.values()}) == 2:
        has, lacks = sorted(having, key=having.__getitem__, reverse=True)
        raise SchemaError(
            f"{has} has the column instance and {lacks} has none, so no key would match: "
            f"add it to {lacks}, or drop it from {has}"
        )


def unreadable(column: str, kind: str, text: str) -> str:
    """Return why a row is rejected whose value in a column is not of its type, a key of `CALLED`."""
    return f"{column} is not {CALLED[kind]}: {text[:SHOWN]}"
