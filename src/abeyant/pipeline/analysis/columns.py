"""Read operations as columns, and sum by group: the first steps of every analysis in Spark's Python workers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.request_log.rows import observed_rows
from abeyant.pipeline.schemas import OBSERVED
from abeyant.pipeline.spark.chunks import chunks
from abeyant.pipeline.spark.columns import check_table
from abeyant.pipeline.spark.packed import PackedRows
from abeyant.pipeline.spark.part_rows import PartRows

__all__ = [
    "TIMES",
    "Integers",
    "LogRows",
    "codes",
    "keys_of",
    "microseconds",
    "observed",
    "observed_columns",
    "run_starts",
    "sum_rows",
    "tables",
]

Integers = npt.NDArray[np.int64]

TIMES: Final = ("local_ms", "send_ms", "throttle_ms")
"""Columns with the times of a request other than its wait, in ms."""

_NEEDED: Final = ("instance", "kind", "start", "outcome", "waited_ms")
_KEYS: Final = "watches.list.element.key"  # its name in Parquet

LogRows = PackedRows | PartRows
"""The operations of a log, which have all columns of `OBSERVED`, in packed rows or in files."""


@overload
def observed(operations: DataFrame, *more: str) -> DataFrame: ...


@overload
def observed(operations: LogRows, *more: str) -> LogRows: ...


@overload
def observed(operations: DataFrame | LogRows, *more: str) -> DataFrame | LogRows: ...


def observed(operations: DataFrame | LogRows, *more: str) -> DataFrame | LogRows:
    """Return the operations whose wait is known: instance, kind, start_us, wait_us, outcome, and `more` columns.

    `keys` are the keys of the watches. `TIMES`, `size_bytes` and `error_code` may be missing, and are then null. Raises
    `SchemaError` if another column is missing, or a column has the wrong type.
    """
    if isinstance(operations, LogRows):
        return operations.prepared(partial(observed_rows, more=more), observed_columns(more))
    missing = {name for name in (*TIMES, "size_bytes", "error_code") if name not in operations.columns}
    needed = (*_NEEDED, *("watches" if name == "keys" else name for name in more if name not in missing))
    check_table(operations, OBSERVED.__class__([OBSERVED[name] for name in needed]), "operations")
    return operations.where(F.col("waited_ms").isNotNull()).select(
        "instance",
        "kind",
        F.unix_micros("start").alias("start_us"),
        F.round(F.col("waited_ms") * 1000).cast("long").alias("wait_us"),
        "outcome",
        *(
            F.lit(None).cast(OBSERVED[name].dataType).alias(name)
            if name in missing
            else F.col("watches.key").alias("keys")
            if name == "keys"
            else F.col(name)
            for name in more
        ),
    )


def observed_columns(more: Iterable[str]) -> list[str]:
    """Return the columns that `observed_rows` needs of a Parquet file of operations, given `more` columns to return."""
    return [*_NEEDED, *(_KEYS if name == "keys" else name for name in more)]


def microseconds(column: pa.ChunkedArray) -> Integers:
    """Return milliseconds as whole microseconds; null as 0."""
    values: Integers = np.rint(column.fill_null(0).to_numpy() * 1000).astype(np.int64)
    return values


def tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches to tables that are large enough for calls on them to be cheap, and not empty."""
    return (pa.Table.from_batches([chunk]) for chunk in chunks(batches))


def codes(column: pa.Array | pa.ChunkedArray) -> tuple[Integers, pa.Array]:
    """Encode a column: return a number for each row, and the value of each number. Null also gets a number."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def run_starts(columns: Sequence[npt.NDArray[Any]]) -> Integers:
    """Return the indices of rows that differ from the row before in some column; the first row always does."""
    rows = len(columns[0])
    differs = np.zeros(rows, bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def sum_rows(columns: Sequence[Integers], values: Sequence[Integers]) -> tuple[list[Integers], list[Integers]]:
    """Return the distinct rows of `columns`, sorted, and the sums of `values` over equal rows. O(n log n)."""
    number = _one_number(columns)
    order = np.lexsort(columns[::-1]) if number is None else np.argsort(number)
    ordered = [column[order] for column in columns]
    starts = run_starts(ordered)
    if not len(starts):
        return ordered, list(values)
    return [column[starts] for column in ordered], [np.add.reduceat(value[order], starts) for value in values]


def _one_number(columns: Sequence[Integers]) -> Integers | None:
    """Encode each row of `columns` as a number that sorts like the rows; None if that takes more than 63 bits."""
    if not len(columns[0]):
        return None
    least = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, least, strict=True)]
    if math.prod(spans) >= 1 << 63:
        return None
    number = np.zeros(len(columns[0]), np.int64)
    for column, low, span in zip(columns, least, spans, strict=True):
        number = number * span + (column - low)
    return number


def keys_of(table: pa.Table) -> tuple[Integers, pa.Array]:
    """Return the distinct keys of each operation, without nulls: (row numbers of the operations, keys)."""
    lists = table["keys"].combine_chunks()
    rows, keys = pc.list_parent_indices(lists), pc.list_flatten(lists)
    at = rows.to_numpy(zero_copy_only=False).astype(np.int64)
    indices = np.arange(len(at))
    if (at[1:] == at[:-1]).any():  # an operation has several
        numbers, values = codes(keys)
        indices = np.sort(np.unique(at * len(values) + numbers, return_index=True)[1])
    indices = indices[keys.is_valid().to_numpy(zero_copy_only=False)[indices]]
    return (at, keys) if len(indices) == len(at) else (at[indices], keys.take(pa.array(indices)))
