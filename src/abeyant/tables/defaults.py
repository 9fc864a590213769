"""Default values for missing columns of operations and events: one list, for Arrow, Spark and JSON."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from abeyant.errors import AbeyantError, SchemaError, did_you_mean

__all__ = [
    "DEFAULTS",
    "REJECT_REASON",
    "SHOWN_CHARS",
    "TYPE_NAMES",
    "check_instances",
    "check_known",
    "only_role",
    "unreadable_reason",
    "warn_of_ignored",
]

DEFAULTS: Final[Mapping[str, str | int | None]] = {
    "instance": "",
    "kind": None,
    "condition": "all",
    "required": 1,  # with a column `key` instead of `watches`
    "progress": 1,
}

REJECT_REASON: Final = "_unreadable"
"""Name of the column that a reader adds if values may be unreadable; it holds the reason to reject a row, or null."""

SHOWN_CHARS: Final = 60
"""Maximum characters of an unreadable value in a reason."""

TYPE_NAMES: Final = {
    "timestamp": "a timestamp",
    "bigint": "a whole number",
    "string": "a text",
    "duration": "a duration such as '15 min'",
}
"""What reasons call each of Spark's types, and a text that should be a duration."""


_REFUSED_WITHOUT: Final = ("op_id", "start", "timeout_ms", "timeout", "deadline", "key", "watches", "at")
_MISSPELT: Final = 0.88  # a letter of eight differs: `cancle_key`, `cancelKey`, but not `extended`


def check_instances(operations: Iterable[str], events: Iterable[str]) -> None:
    """Raise `SchemaError` if only one table has a column `instance` (or `Instance`). The arguments are column names.

    In the other table every `instance` would be '', the default. Then no key matches, and every operation expires.
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


def check_known(columns: Iterable[str], known: Collection[str], name: str) -> None:
    """Raise `AbeyantError` if one of `columns`, to which the user maps values, is not a `known` column of `name`."""
    for column in columns:
        if column not in known:
            raise AbeyantError(
                f"{name}: cannot map the unknown column {column!r}; the columns are {', '.join(sorted(known))}"
            )


def only_role(operations: Collection[str]) -> str | None:
    """Return the role of a column such as `extend_key`, if operations have neither `watches` nor `key`; else None.

    No event completes such operations: they expire at their deadline, which events may move, or are cancelled. For
    example, a user's session has only an `extend_key`.
    """
    if "watches" in operations or "key" in operations:
        return None
    return next((role for role in ("cancel", "extend", "pause") if f"{role}_key" in operations), None)


def warn_of_ignored(names: Collection[str], read: Collection[str], name: str) -> None:
    """Warn of each column of the table `name` that is ignored, but looks as if it were read.

    Such a column is named almost like a column that is read: a table with `cancle_key` would be resolved as if nothing
    were cancelled. Or it is a `deadline` in a table with a `timeout`, which is read in its place. (A table that has
    `timeout_ms`, too, gives no warning: its other two columns may be the user's own.) `read` has the names of all
    columns that a table may have.
    """
    missing = sorted({*read}.difference(names, _REFUSED_WITHOUT))
    for column in sorted({*names}.difference(read)):
        if column.lower() in DEFAULTS:
            continue  # it is refused
        if meant := did_you_mean(column, missing, _MISSPELT):
            warnings.warn(f"{name}: the column {column!r} is ignored{meant} Rename or drop it", stacklevel=2)
    if {"timeout", "deadline"} <= {*names} & {*read} and "timeout_ms" not in names:
        warnings.warn(
            f"{name}: the column 'deadline' is ignored beside 'timeout': drop one, or fill gaps of deadline with "
            "start + timeout, and drop timeout",
            stacklevel=2,
        )


def unreadable_reason(column: str, kind: str, text: str) -> str:
    """Return the reason to reject a value that is not of its column's type; `kind` is a key of `TYPE_NAMES`."""
    return f"{column} is not {TYPE_NAMES[kind]}: {text[:SHOWN_CHARS]}"
