"""Map a table's columns by --operation and --event, as far as these name columns and constants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Final

import pyarrow as pa

from abeyant.errors import AbeyantError, did_you_mean
from abeyant.pipeline.commands.quick.needs_spark import NeedsSparkError
from abeyant.tables.schemas import columns_of

__all__ = ["constant_of", "mapped"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*|`[^`]+`", re.ASCII)
_TEXT: Final = re.compile(r"'([^'\\]*)'")
_NUMBER: Final = re.compile(r"-?\d{1,9}(?:\s*\*\s*\d{1,9})*", re.ASCII)
_LARGEST: Final = 2**31 - 1  # beyond it, SQL's integers need another type
_NO_COLUMNS: Final = {
    *("null", "true", "false", "current_date", "current_time", "current_timestamp", "localtimestamp", "now"),
    *("user", "current_user", "session_user", "current_catalog", "current_database", "current_schema"),
}
"""What SQL takes for a value where no column has the name."""


def mapped(table: pa.Table, wanted: Mapping[str, str], columns: Mapping[str, str], name: str) -> pa.Table:
    """Return the table with columns by our names; `columns` maps names of ours to SQL.

    A column that differs from ours only in case is renamed. Raises `AbeyantError` for SQL that names a missing column,
    `NeedsSparkError` for SQL that is more than a column or a constant, and for names that are one in lower case.
    """
    lower = [column.lower() for column in table.column_names]
    if len({*lower}) < len(lower):
        raise NeedsSparkError(f"two columns of {name} differ only in upper and lower case")
    known = columns_of(wanted)
    values = {column: _value(table, lower, sql, f"{name}: {column}={sql}") for column, sql in columns.items()}
    given = [column if column in known else shown for column, shown in zip(lower, table.column_names, strict=True)]
    table = table.rename_columns(given)
    for column, value in values.items():
        place = table.schema.get_field_index(column)
        table = table.append_column(column, value) if place < 0 else table.set_column(place, column, value)
    return table


def constant_of(sql: str) -> str | None:
    """Return the text of an SQL literal of text; None for other SQL."""
    return text[1] if (text := _TEXT.fullmatch(sql)) else None


def _value(table: pa.Table, lower: list[str], sql: str, shown: str) -> pa.ChunkedArray:
    rows = table.num_rows
    if (text := constant_of(sql)) is not None:
        return pa.chunked_array([pa.repeat(pa.scalar(text), rows)])
    if _NUMBER.fullmatch(sql):
        number = prod(map(int, sql.split("*")))
        if abs(number) <= _LARGEST:
            return pa.chunked_array([pa.repeat(pa.scalar(number, pa.int32()), rows)])
    elif _NAME.fullmatch(sql) and sql.lower() not in _NO_COLUMNS:
        column = sql.strip("`").lower()
        if column in lower:
            return table.column(lower.index(column))
        names = table.column_names
        raise AbeyantError(f"{shown}: no column {column!r} (columns: {', '.join(names)}){did_you_mean(column, names)}")
    raise NeedsSparkError(f"{shown} is more than a column or a constant")
