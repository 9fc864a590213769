"""Convert users' tables with an Arrow interface (pandas, Polars, DuckDB) to Spark DataFrames, and check them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DayTimeIntervalType, StructField, StructType, TimestampType

from abeyant.errors import AbeyantError, SchemaError
from abeyant.pipeline.schemas import EVENTS, FURTHER, OPERATIONS
from abeyant.pipeline.sources.tables import Name, check_constants
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.columns import is_case_sensitive
from abeyant.pipeline.spark.plans import estimated_size
from abeyant.tables import schemas as in_process
from abeyant.tables.defaults import warn_of_ignored

if TYPE_CHECKING:
    from abeyant.tables.validity import Operations

__all__ = ["Given", "KnownRows", "as_dataframe", "session_of"]

Given = Any
"""A table that a user passes: a Spark DataFrame, or a table with an Arrow interface (`__arrow_c_stream__`)."""

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d\d?)(?::?(?P<minutes>\d\d))?")
_SIGNED: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
"""Signed types for unsigned integers, which Spark does not have."""
_UTC: Final = ("Z", "UT")
"""Names of UTC that Spark accepts and Arrow does not."""
_HEAD: Final = 1_000


def session_of(tables: Iterable[Given]) -> SparkSession:
    """Return the session of the first DataFrame among the tables, else the active session.

    Raises `AbeyantError` if no session is active.
    """
    for table in tables:
        if isinstance(table, DataFrame):
            return table.sparkSession
    try:
        return SparkSession.active()
    except PySparkException as error:
        raise AbeyantError(
            "no Spark session is active to load the tables: start one (abeyant.pipeline.spark_session()), or "
            "resolve them without Spark (abeyant.tables)"
        ) from error


def as_dataframe(
    table: Given, name: Name, spark: SparkSession, *, whole: bool = False, checked: KnownRows | None = None
) -> DataFrame:
    """Return the table `operations` or `events` as a DataFrame: the columns that we need, or all columns if `whole`.

    A DataFrame is returned unchanged. In other tables, missing columns get their defaults (`abeyant.tables.defaults`),
    times without a time zone are in the session's zone, as everywhere in Spark, and integers, text and times may have
    any width. If rows can be read without a job (tables with an Arrow interface, and DataFrames whose plan holds the
    rows), add them to `checked`, which warns if nearly all are rejected. Raises TypeError for an argument that is not a
    table, `SchemaError` for a table without the columns needed, for values that do not fit their column, and, with
    `checked`, for a duration that is the same unreadable text in every row.
    """
    if isinstance(table, DataFrame):
        if checked is not None:
            _check_dataframe(table, name, checked)
        return table
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            f"{name} must be a DataFrame of Spark or a table with an Arrow interface (pandas, Polars, DuckDB, "
            f"pyarrow), not {type(table).__name__}"
        )
    from abeyant.tables.reading import (
        normalize_table,
        table_of,
    )
    from abeyant.tables.unmatched import key_column  # pandas comes with it: 0.2 s for each of Spark's Python workers

    schema = _schema_of(name)
    rows = _in_our_case(table_of(table, {}, name), schema, spark)
    in_process.check(rows.schema, schema, name)
    warn_of_ignored(rows.column_names, in_process.columns_of(schema), name)
    names = rows.column_names
    rows = normalize_table(rows, schema, whole=whole)
    if checked is not None:
        checked.add(rows, name, key_column(names))
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    kinds = _kinds(rows.schema, name)
    columns = [
        _fitting(values, kinds.get(column), zone, f"{name}: column {column!r}")
        for column, values in zip(rows.column_names, rows.columns, strict=True)
    ]
    # Spark 4.3 loses rows of a table of many chunks, and refuses a table without chunks.
    arrow_table = pa.table(columns, rows.column_names).combine_chunks()
    if not arrow_table.num_rows:
        arrow_table = pa.table([pa.array([], kind) for kind in arrow_table.schema.types], arrow_table.schema)
    return spark.createDataFrame(arrow_table)


def _schema_of(name: Name) -> Mapping[str, str]:
    return in_process.OPERATIONS if name == "operations" else in_process.EVENTS


def _in_our_case(rows: pa.Table, schema: Mapping[str, str], spark: SparkSession) -> pa.Table:
    """Rename columns that differ from ours only in case, if the session ignores case."""
    if is_case_sensitive(spark):
        return rows
    columns = in_process.expected_columns(schema, [column.lower() for column in rows.column_names])
    canonical = {column.lower(): column for column in {**schema, **columns}}
    return rows.rename_columns([canonical.get(column.lower(), column) for column in rows.column_names])


def _check_dataframe(table: DataFrame, name: Name, checked: KnownRows) -> None:
    check_constants(table, name)
    if table.isStreaming or (size := estimated_size(table)) is None or not size.in_plan:
        return
    from abeyant.tables.reading import normalize_table
    from abeyant.tables.unmatched import key_column

    schema = _schema_of(name)
    rows = _in_our_case(table.limit(_HEAD).toArrow(), schema, table.sparkSession)
    try:
        in_process.check(rows.schema, schema, name)
    except SchemaError:
        return  # Spark accepts more types than Arrow's check, and reports the others itself
    part = f" (the first {_HEAD:,})" * (rows.num_rows == _HEAD)
    checked.add(normalize_table(rows, schema), name, key_column(rows.column_names), part, stacklevel=5)


class KnownRows:
    """The rows of both tables that can be read without a job, kept to warn of rejected rows and of unmatched keys."""

    def __init__(self) -> None:
        self._operations: tuple[Operations, str] | None = None
        self._events: pa.Table | None = None

    def add(self, rows: pa.Table, name: Name, column: str, part: str = "", *, stacklevel: int = 4) -> None:
        """Keep the normalized rows of a table, and warn if nearly all of them are rejected.

        `column` names the operations' column of keys. `part` describes the rows if they are only a part of the table,
        such as " (the first 1,000)"; rows of a part are not kept.
        """
        from abeyant.tables.reasons import EVENT_REASONS
        from abeyant.tables.rejections import Rejections
        from abeyant.tables.rules import ALL_CONDITIONS
        from abeyant.tables.validity import event_reasons, read_operations, valid_events

        rejections = Rejections(name, part)
        if name == "events":
            rejections.add(rows, event_reasons(rows), EVENT_REASONS)
            self._events = None if part else valid_events(rows)
        else:
            operations = read_operations(rows, ALL_CONDITIONS)
            rejections.add(operations.table, operations.reason, operations.reasons)
            self._operations = None if part else (operations.only_valid(), column)
        rejections.warn(stacklevel)

    def warn_of_unmatched(self, *, stacklevel: int) -> None:
        """Warn if all rows of both tables are known and the tables have no key in common."""
        if self._operations is None or self._events is None:
            return
        from abeyant.tables.unmatched import unmatched_in

        if message := unmatched_in(*self._operations, self._events):
            warnings.warn(message, stacklevel=stacklevel + 1)


def _kinds(rows: pa.Schema, name: Name) -> Mapping[str, pa.DataType]:
    """Return the Arrow type that Spark needs for each of our columns."""
    if name == "events":
        return {field.name: field.type for field in arrow_schema(EVENTS)}
    columns = {**dict.fromkeys(("timeout", "extend"), DayTimeIntervalType()), "deadline": TimestampType()}
    column_names = in_process.expected_columns(in_process.OPERATIONS, rows.names)
    fields = {field.name: field for field in OPERATIONS.fields}
    further = {name: StructField(name, kind) for name, kind in {**FURTHER, **columns}.items() if name in column_names}
    kinds = {field.name: field.type for field in arrow_schema(StructType(list({**fields, **further}.values())))}
    watches = rows.field("watches").type
    kind = None if pa.types.is_null(watches) else watches.value_type
    has_role = kind is not None and pa.types.is_struct(kind) and kind.get_field_index("role") >= 0
    watch_fields = [("key", pa.string()), ("required", pa.int64()), *([("role", pa.string())] if has_role else [])]
    return {**kinds, "watches": pa.list_(pa.struct(watch_fields))}  # a null in it is allowed: the row is rejected later


def _fitting(column: pa.ChunkedArray, kind: pa.DataType | None, zone: str, label: str) -> pa.ChunkedArray:
    """Return the column in a type that Spark accepts: in `kind`, or if that is None, in a type close to its own."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        if column.type.unit == "ns":  # Spark drops nanoseconds; before 1970 a cast would round up
            column = pc.floor_temporal(column, unit="microsecond").cast(pa.timestamp("us", column.type.tz))
        if kind is not None and column.type.tz is None:
            column = _in_zone(column, zone, label)
    if kind is None:
        return column.cast(_SIGNED.get(column.type, column.type))
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaError(f"{label} is {column.type}, and cannot be converted to {kind}: {error}") from error


def _in_zone(column: pa.ChunkedArray, zone: str, label: str) -> pa.ChunkedArray:
    """Return times without a zone as instants, taken to be in Spark's `zone`, by the rules of Spark.

    A local time that occurs twice, when clocks go back, is the first of the two instants. A local time that clocks skip
    is moved later by as much as the clocks are put forward.
    """
    zone_name, offset = "UTC" if zone in _UTC else zone, _OFFSET.fullmatch(zone)
    if offset is not None:
        zone_name = f"{offset['sign']}{offset['hours']:0>2}:{offset['minutes'] or '00'}"
    try:
        before = pc.assume_timezone(column, zone_name, ambiguous="earliest", nonexistent="earliest")
        after = pc.assume_timezone(column, zone_name, ambiguous="earliest", nonexistent="latest")
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"{label} has times without a zone, and the session's zone, {zone}, is known only to Spark: set "
            "spark.sql.session.timeZone to a name such as America/Los_Angeles"
        ) from error
    exists = pc.equal(before, after)
    if pc.all(exists).as_py() is not False:
        return before
    local, instant = pc.local_timestamp(before).cast(pa.int64()), before.cast(pa.int64())
    later = pc.add(pc.subtract(column.cast(pa.int64()), local), instant)
    return pc.if_else(exists, before, later.cast(before.type))
