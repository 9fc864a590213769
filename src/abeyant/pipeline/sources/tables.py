"""Anybody's tables as `operations` and `events`: columns mapped by SQL expressions, texts read as times and numbers.

A text that cannot be read becomes null, so that its row is rejected and the others are resolved. Any other wrong type
is refused for the whole table: a number is never taken for a time, since nobody knows its unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

from abeyant.errors import AbeyantError, SchemaError
from abeyant.pipeline.schemas import EVENTS, OPERATIONS, check_table, is_case_sensitive
from abeyant.pipeline.sources.expressions import null_on_error
from abeyant.pipeline.spark.errors import in_one_line

__all__ = ["READABLE", "cast_or_null", "check_mapped", "events_from", "operations_from"]

READABLE: Final = {
    "timestamp": ("string", "date", "timestamp_ntz"),
    "bigint": ("string", "int", "smallint", "tinyint"),
    "string": ("int", "bigint", "smallint", "tinyint"),
}


_WATCH: Final = StructType([StructField("key", StringType()), StructField("required", LongType())])
_CLOCK_TIME: Final = r"^[\x00-\x20]*(?:[Tt]|\d+:)"


def operations_from(table: DataFrame, columns: Mapping[str, str] | None = None, *, survive: bool = False) -> DataFrame:
    """Return a table as `operations`. `columns` says where a column comes from, as a Spark SQL expression.

    Instead of `watches` there may be `key` and `required`, for one watch. Defaults: `instance` '', `kind` null,
    `condition` 'all', `required` 1. With `survive` an expression that fails on a row is null there, so that the row is
    rejected; without, it ends the query. Raises `AbeyantError` for an expression that Spark does not understand,
    `SchemaError` for a column that is missing or of a type that cannot be read.
    """
    defaults = {"instance": F.lit(""), "kind": F.lit(None).cast("string"), "condition": F.lit("all")}
    mapped = _mapped(table, OPERATIONS, "operations", dict(columns or {}), defaults, survive)
    return mapped.select(*OPERATIONS.fieldNames())


def events_from(table: DataFrame, columns: Mapping[str, str] | None = None, *, survive: bool = False) -> DataFrame:
    """Return a table as `events`, as `operations_from` does. Defaults: `instance` '', `progress` 1."""
    defaults = {"instance": F.lit(""), "progress": F.lit(1).cast("bigint")}
    return _mapped(table, EVENTS, "events", dict(columns or {}), defaults, survive).select(*EVENTS.fieldNames())


def check_mapped(table: Literal["operations", "events"], columns: Iterable[str]) -> None:
    """Raise `AbeyantError` for a column that is none of the table's."""
    known = _known(table)
    for column in columns:
        if column not in known:
            raise AbeyantError(
                f"{table}: there is no column {column!r} to be mapped; there are {', '.join(sorted(known))}"
            )


def _known(table: Literal["operations", "events"]) -> set[str]:
    return {*OPERATIONS.fieldNames(), "key", "required"} if table == "operations" else set(EVENTS.fieldNames())


def cast_or_null(value: Column, found: str, wanted: DataType) -> Column:
    """Return a value of type `found`, as Spark writes types, with one of `READABLE`; null where it cannot be read."""
    cast = value.try_cast(wanted)
    if found == "string" and isinstance(wanted, TimestampType):
        # Spark would put a mere clock time on the day on which it reads it: on another day, another outcome.
        return F.when(~value.rlike(_CLOCK_TIME), cast)
    return cast


def _in_our_case(table: DataFrame, known: set[str]) -> DataFrame:
    """Write each of our columns as we do, where the session takes `Kind` for `kind`; not where both are there."""
    if is_case_sensitive(table.sparkSession):
        return table
    lower = [column.lower() for column in table.columns]
    other = {
        column: name
        for column, name in zip(table.columns, lower, strict=True)
        if name in known and column != name and lower.count(name) == 1
    }
    return table.withColumnsRenamed(other) if other else table


def _mapped(
    table: DataFrame,
    schema: StructType,
    name: Literal["operations", "events"],
    columns: dict[str, str],
    defaults: Mapping[str, Column],
    survive: bool,
) -> DataFrame:
    check_mapped(name, columns)
    given = table.columns
    try:
        table = _in_our_case(table, _known(name))
        # All at once: an expression means the table's own columns, not what was made of them.
        values = {column: F.expr(sql) for column, sql in columns.items()}
        if values:  # Spark Connect takes no empty dict
            table = table.withColumns(null_on_error(table, values) if survive else values)
        _ = table.schema  # on Spark Connect nothing is analyzed before it is asked for
    except AnalysisException as error:
        raise AbeyantError(f"{name}: {in_one_line(error)}") from error
    try:
        if name == "operations" and "watches" not in columns and ("key" in columns or "watches" not in table.columns):
            table = _with_watches(table)
        absent = {column: value for column, value in defaults.items() if column not in table.columns}
        table = _read_texts(table.withColumns(absent) if absent else table, schema)
        check_table(table, schema if "watches" in table.columns else _without_watches(schema), name, given=given)
    except SchemaError as error:
        raise SchemaError(f"{error}; --{name.removesuffix('s')} COLUMN=SQL says where a column comes from") from None
    return table


def _without_watches(schema: StructType) -> StructType:
    """Ask for a key in their place: that is what most tables have."""
    return StructType([_WATCH["key"] if field.name == "watches" else field for field in schema.fields])


def _with_watches(table: DataFrame) -> DataFrame:
    if "key" not in table.columns:
        return table  # the check will say that there is none
    if "required" not in table.columns:
        table = table.withColumn("required", F.lit(1))
    table = _read_texts(table, _WATCH)
    check_table(table, _WATCH, "operations")
    return table.withColumn("watches", F.array(F.struct("key", "required")))


def _read_texts(table: DataFrame, schema: StructType) -> DataFrame:
    read = {}
    for field in schema.fields:
        wanted = field.dataType.simpleString()
        if field.name in table.columns:
            found = table.schema[field.name].dataType.simpleString()
            if found in READABLE.get(wanted, ()):
                read[field.name] = cast_or_null(F.col(field.name), found, field.dataType)
    return table.withColumns(read) if read else table
