"""Columns of Arrow batches as NumPy arrays, and rows filtered by a mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Flags", "Longs", "codes", "column", "filter_rows", "set_columns", "split_rows", "table"]

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


def column(rows: pa.RecordBatch, name: str) -> Longs:
    """Return a column of integers without nulls; 64-bit integers are not copied."""
    values: Longs = rows.column(name).to_numpy().astype(np.int64, copy=False)
    return values


def table(rows: pa.RecordBatch, *names: str) -> Longs:
    """Return columns of integers as one two-dimensional array."""
    return np.column_stack([column(rows, name) for name in names])


def codes(rows: pa.RecordBatch, name: str) -> Longs:
    """Return a number for each row of a column, equal exactly where values are equal."""
    numbers: Longs = rows.column(name).dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def filter_rows(rows: pa.RecordBatch, mask: Flags) -> pa.RecordBatch:
    """Return the rows that the mask marks."""
    return rows if mask.all() else rows.filter(pa.array(mask))


def split_rows(rows: pa.RecordBatch, judge: Callable[[pa.RecordBatch], Flags]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the rows that `judge` does not mark, and then the rows that it marks."""
    mask = judge(rows)
    return filter_rows(rows, ~mask), filter_rows(rows, mask)


def set_columns(rows: pa.RecordBatch, **columns: Longs) -> pa.RecordBatch:
    """Return the rows with new values in the given columns of integers."""
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), pa.array(values))
    return rows
