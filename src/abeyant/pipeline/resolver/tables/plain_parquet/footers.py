"""Decide by plan and footers whether a table is plain Parquet files, which Python workers can read without Spark.

Spark reads Parquet by columns, converts them to rows, and the rows to columns again for Python. That takes longer than
all of Python's work on them. So workers read the columns that they need of plain files with Arrow.

A table is plain if Arrow certainly reads the same values as Spark; if not, Spark reads it:

- The plan is a scan of Parquet files, with at most a filter by comparisons, and columns that are renamed, constant or
  made of one key (`spark.plans.Expression`): no table of a catalog or of another format that keeps rows in Parquet. The
  reader had no option that changes what is read, such as to pass over broken files.
- Every file has every column that is read, under the same name and with the same type; no file is encrypted.
- Times are after 1900, or written by Spark since 3.1: Spark may shift other times by some days.
- Workers can open the files as Spark does (`stored`), and the session is not one of Spark Connect, whose Python may be
  on another machine.

`spark.abeyant.parquet.direct=false` leaves all reading to Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from abeyant.pipeline.resolver.tables.plain_parquet.computing import ARROW_TYPES
from abeyant.pipeline.resolver.tables.plain_parquet.stored import Stored, opened, stored
from abeyant.pipeline.schemas import OPERATIONS
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.plans import Expression, names_of, plain_scan

__all__ = [
    "DIRECT",
    "PlainTable",
    "RowGroup",
    "has_encrypted_columns",
    "may_be_then",
    "of_each_file",
    "plain_table",
    "reads_as_is",
]

DIRECT: Final = "spark.abeyant.parquet.direct"

# The driver reads the footer of each file, in about 0.3 ms, or on a store by a few requests of 20 ms each. Spark takes
# several times as long per file, whenever it scans the table.
_MOST_FILES: Final = 1 << 15
_THREADS: Final = 8
_MOST_REMOTE_FILES: Final = 1 << 13
_REMOTE_THREADS: Final = 32

_FALSE: Final = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
_WATCHES: Final = OPERATIONS["watches"].dataType.simpleString()
_END: Final = b"\0\0\0\0PAR1"  # the last bytes of a file: the length of its metadata, and the magic
_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_YEAR_1900: Final = -2_208_988_800  # seconds since 1970

_T = TypeVar("_T")


class RowGroup(NamedTuple):
    """A row group of a Parquet file, as its footer describes it."""

    file: Stored
    number: int
    rows: int
    size: int
    """Compressed bytes of the columns that are read."""
    may_have_steps: bool = True
    """Whether the statistics leave it possible that a row's condition is `then`."""


class PlainTable(NamedTuple):
    """A table that is plain Parquet files."""

    groups: Sequence[RowGroup]
    """Row groups that have rows; empty row groups are left out."""
    columns: Mapping[str, Expression]
    """The expression of each column, over the columns of the files."""
    condition: Expression | None
    """The filter of the rows; None keeps all."""


def plain_table(table: DataFrame, expected: StructType) -> PlainTable | None:
    """Return how to read the columns `expected` of a table that is plain Parquet files, else None.

    No job is run; the driver reads the end of each file.
    """
    spark = table.sparkSession
    if is_connect(spark) or not reads_as_is(spark):
        return None
    scan = plain_scan(table, expected.fieldNames())
    if scan is None:
        return None
    read = names_of([*scan.columns.values(), *([] if scan.condition is None else [scan.condition])])
    condition = scan.columns.get("condition", ("literal", None))
    groups_by_file = of_each_file(spark, scan.files, partial(_groups_of, read=read, condition=condition))
    if not groups_by_file:
        return None
    return PlainTable([group for groups in groups_by_file for group in groups], scan.columns, scan.condition)


def of_each_file(spark: SparkSession, uris: Sequence[str], read: Callable[[Stored], _T | None]) -> list[_T] | None:
    """Return `read(file)` for each file, called in threads of the driver.

    Return None if there are too many files, a file is out of reach, or `read` returns None for a file.
    """
    files = stored(spark, uris[: _MOST_FILES + 1])
    if files is None:
        return None
    remote = any(file.reach is not None for file in files)
    if len(files) > (_MOST_REMOTE_FILES if remote else _MOST_FILES):
        return None
    with ThreadPoolExecutor(_REMOTE_THREADS if remote else _THREADS, "abeyant-footers") as pool:
        results = [result for result in pool.map(read, files) if result is not None]
    return results if len(results) == len(files) else None


def reads_as_is(spark: SparkSession) -> bool:
    """Return whether the session allows direct reading, and no setting changes what is read of a file."""
    return spark.conf.get(DIRECT, "true") == "true" and all(spark.conf.get(name, "false") == "false" for name in _FALSE)


def _groups_of(
    stored_file: Stored, read: Mapping[str, str], condition: Expression = ("literal", None)
) -> list[RowGroup] | None:
    """Return the row groups of a file, None if it is not plain. `read` maps the columns to read to their types."""
    import pyarrow.parquet as pq

    try:
        with opened(stored_file) as source:
            file: Any = pq.read_metadata(source)
            if has_encrypted_columns(file, source):
                return None
        leaves = list(_leaves(file, read))
        groups = [(n, group) for n in range(file.num_row_groups) if (group := file.row_group(n)).num_rows]
        if any("nanoseconds" in file.schema.column(leaf).logical_type.to_json() for leaf in leaves):
            return None
        if not _has_all(file.schema.to_arrow_schema(), read) or not (
            _of_todays_spark(file) or all(_since_1900(file, [group for _, group in groups], leaf) for leaf in leaves)
        ):
            return None
        return [
            RowGroup(
                stored_file,
                number,
                group.num_rows,
                sum(group.column(leaf).total_compressed_size for leaf in leaves),
                may_be_then(condition, [group.column(leaf) for leaf in leaves]),
            )
            for number, group in groups
        ]
    except (OSError, ValueError, OverflowError, pa.ArrowException):  # Spark will report it, in words that users know
        return None


def may_be_then(condition: Expression, columns: Sequence[Any]) -> bool:
    """Return whether the expression `condition` may be `then` in a row group with these columns."""
    if condition[0] != "column":
        return bool(condition[1] == "then")
    (column,) = (chunk for chunk in columns if chunk.path_in_schema == condition[1])
    statistics = column.statistics
    if statistics is None:
        return True
    if statistics.null_count == column.num_values:
        return False
    return not statistics.has_min_max or bool(statistics.min <= "then" <= statistics.max)


def has_encrypted_columns(file: Any, source: Any) -> bool:
    """Return whether some columns are encrypted, by the signature that then follows the metadata.

    Arrow aborts the process when such a column is read.
    """
    source.seek(-len(_END), os.SEEK_END)
    return bool(file.serialized_size != int.from_bytes(source.read(4), "little"))


def _leaves(file: Any, columns: Iterable[str]) -> Iterator[int]:
    for number in range(file.num_columns):
        if file.schema.column(number).path.partition(".")[0] in columns:
            yield number


def _has_all(schema: pa.Schema, read: Mapping[str, str]) -> bool:
    return all(
        [other for other in schema.names if other.lower() == name.lower()] == [name]
        and _fits(schema.field(name).type, kind)
        for name, kind in read.items()
    )


def _fits(arrow_type: pa.DataType, spark_type: str) -> bool:
    if spark_type == "string":
        return _is_text(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)
    if spark_type == "timestamp":  # Arrow reads Spark's INT96 times as nanoseconds without a zone
        return bool(pa.types.is_timestamp(arrow_type)) and (arrow_type.unit != "ns") == (arrow_type.tz is not None)
    if spark_type in ARROW_TYPES:
        return bool(arrow_type == ARROW_TYPES[spark_type])
    if not (pa.types.is_list(arrow_type) and pa.types.is_struct(arrow_type.value_type)):
        return False
    fields = [arrow_type.value_type.field(number) for number in range(arrow_type.value_type.num_fields)]
    return (
        spark_type == _WATCHES
        and [field.name for field in fields] == ["key", "required"]
        and _is_text(fields[0].type)
        and fields[1].type == pa.int64()
    )


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _of_todays_spark(file: Any) -> bool:
    """Return whether the file's writer is a Spark whose times need no shift (3.1 or later)."""
    metadata = file.metadata or {}
    version = tuple(map(int, re.findall(rb"\d+", metadata.get(_VERSION, b""))[:2]))
    return version >= (3, 1) and not any(name in metadata for name in _LEGACY)


def _since_1900(file: Any, groups: list[Any], leaf: int) -> bool:
    """Return whether a column's statistics show that none of its times is before 1900, or it has no times."""
    column = file.schema.column(leaf)
    if column.physical_type == "INT96":
        return False
    if column.logical_type.type != "TIMESTAMP":
        return True
    chunks = [(group.column(leaf).statistics, group.num_rows) for group in groups]
    return all(
        statistics
        and (statistics.min.timestamp() >= _YEAR_1900 if statistics.has_min_max else statistics.null_count == rows)
        for statistics, rows in chunks
    )
