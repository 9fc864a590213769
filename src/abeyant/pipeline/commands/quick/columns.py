"""Map a table's columns by --operation and --event, if these options name only columns and constants."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from abeyant.errors import AbeyantError, did_you_mean, listed
from abeyant.pipeline.commands.quick.eligible import NeedsSparkError, column_of, number_of
from abeyant.pipeline.sources.quoted_names import check_quoted, text_of
from abeyant.tables.defaults import check_known
from abeyant.tables.schemas import columns_of

__all__ = ["mapped"]


def mapped(table: pa.Table, expected: Mapping[str, str], columns: Mapping[str, str], name: str) -> pa.Table:
    """Return the table with its columns mapped; `columns` maps names of `expected` columns to SQL.

    Renames a column whose name differs from an expected name only in case. Raises `AbeyantError` for SQL that names a
    missing column, or puts a column's name in quotes, and for an unknown name in `columns`; `NeedsSparkError` if two
    columns of the table differ only in case.
    """
    lower = [column.lower() for column in table.column_names]
    if len({*lower}) < len(lower):
        raise NeedsSparkError(f"two columns of {name} differ only in upper and lower case")
    names = columns_of(expected)
    check_known(columns, names, name)
    check_quoted(columns, table.column_names, name)
    values = {column: _value(table, lower, sql, f"{name}: {column}={sql}") for column, sql in columns.items()}
    new_names = [
        column if column in names else original for column, original in zip(lower, table.column_names, strict=True)
    ]
    table = table.rename_columns(new_names)
    for column, value in values.items():
        index = table.schema.get_field_index(column)
        table = table.append_column(column, value) if index < 0 else table.set_column(index, column, value)
    return table


def _value(table: pa.Table, lower: list[str], sql: str, label: str) -> pa.ChunkedArray:
    if (text := text_of(sql)) is not None:
        return pa.chunked_array([pa.repeat(pa.scalar(text), table.num_rows)])
    if (number := number_of(sql)) is not None:
        return pa.chunked_array([pa.repeat(pa.scalar(number, pa.int32()), table.num_rows)])
    column = column_of(sql)
    if column in lower:
        return table.column(lower.index(column))
    names = table.column_names
    raise AbeyantError(f"{label}: no column {sql} (columns: {listed(names)}){did_you_mean(column or sql, names)}")
