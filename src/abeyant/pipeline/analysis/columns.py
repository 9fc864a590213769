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
    "count_equal",
    "count_rows",
    "decoded",
    "encode",
    "join_tables",
    "keys_of",
    "merge_rows",
    "microseconds",
    "observed",
    "observed_columns",
    "run_starts",
    "sorted_order",
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
    """Encode a column: return a number for each row, and the value of each number. Null has the last number.

    An encoded column, whose dictionary has no null, keeps its numbers: some may have no row.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
    numbers, values = encoded.indices, encoded.dictionary
    if numbers.null_count:
        numbers, values = numbers.fill_null(len(values)), pa.concat_arrays([values, pa.nulls(1, values.type)])
    return numbers.to_numpy().astype(np.int64), values


def join_tables(parts: Iterable[pa.Table]) -> pa.Table:
    """Join tables to one, whose encoded columns have one dictionary each: Arrow groups rows by no other."""
    return pa.concat_tables(parts).combine_chunks()


def decoded(table: pa.Table) -> pa.Table:
    """Return a table with its columns of encoded text as plain text."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


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
    return merge_rows(columns, [(value, np.add) for value in values])


def merge_rows(
    columns: Sequence[Integers], values: Sequence[tuple[Integers, np.ufunc]]
) -> tuple[list[Integers], list[Integers]]:
    """Return the distinct rows of `columns`, sorted, and each value reduced with its function over equal rows.

    O(n log n).
    """
    order = sorted_order(columns)
    ordered = [column[order] for column in columns]
    starts = run_starts(ordered)
    if not len(starts):
        return ordered, [value for value, _ in values]
    return [column[starts] for column in ordered], [reduce.reduceat(value[order], starts) for value, reduce in values]


def sorted_order(columns: Sequence[Integers]) -> Integers:
    """Return the order that sorts the rows of `columns`; equal rows are in no certain order. O(n log n)."""
    spans = _spans(columns)
    return np.lexsort(columns[::-1]) if spans is None else np.argsort(_numbers(columns, spans))


def count_rows(columns: Sequence[Integers]) -> tuple[list[Integers], Integers]:
    """Return the distinct rows of `columns`, sorted, and how many rows are equal to each. O(n log n)."""
    if (spans := _spans(columns)) is None:
        rows, (counts,) = sum_rows(columns, [np.ones(len(columns[0]), np.int64)])
        return rows, counts
    number = np.sort(_numbers(columns, spans))  # several times as fast as to sort the order of the rows
    starts = run_starts([number])
    number, distinct = number[starts], []
    for low, span in reversed(spans):
        number, place = np.divmod(number, span)
        distinct.append(place + low)
    return distinct[::-1], np.diff(np.append(starts, len(columns[0])))


def count_equal(
    table: pa.Table, texts: Sequence[str], numbers: Sequence[Integers]
) -> tuple[dict[str, pa.Array], list[Integers], Integers]:
    """Count the rows that are equal in the columns `texts` of a table, and in `numbers`, which have a value a row.

    Return a value of each text, encoded, and of each number for each group of equal rows, and the number of its rows.
    O(n log n).
    """
    encoded = [codes(table[name]) for name in texts]
    columns, counts = count_rows([*(number for number, _ in encoded), *numbers])
    pairs = zip(texts, encoded, columns[: len(texts)], strict=True)
    return {name: encode(number, values) for name, (_, values), number in pairs}, columns[len(texts) :], counts


def encode(numbers: Integers, values: pa.Array) -> pa.DictionaryArray:
    """Return the encoded column of which `codes` returned these. It takes a fraction of the time to sort and move."""
    known = values.drop_null()  # Arrow cannot join dictionaries with a null
    mask = numbers == len(known) if values.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32(), mask=mask), known)


def _spans(columns: Sequence[Integers]) -> list[tuple[int, int]] | None:
    """Return each column's least value and number of values from there; None if a row takes more than 63 bits."""
    if not len(columns[0]):
        return None
    least = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, least, strict=True)]
    return list(zip(least, spans, strict=True)) if math.prod(spans) < 1 << 63 else None


def _numbers(columns: Sequence[Integers], spans: Sequence[tuple[int, int]]) -> Integers:
    """Encode each row of `columns` as a number that sorts like the rows."""
    number = np.zeros(len(columns[0]), np.int64)
    for column, (low, span) in zip(columns, spans, strict=True):
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
