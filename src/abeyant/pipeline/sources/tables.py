"""Convert the user's tables to `operations` and `events`: map columns by SQL expressions, parse texts.

A text that cannot be parsed, or a number that is not whole, becomes null. Its row is rejected, with the value in the
reason; all other rows are resolved. A column of any other wrong type is an error: a number is never read as a time,
since its unit is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from abeyant.errors import AbeyantError, SchemaError
from abeyant.pipeline.schemas import EVENTS, FURTHER, HOW_LONG, OBSERVED, OPERATIONS, REJECT_REASON
from abeyant.pipeline.sources.expressions import null_on_error
from abeyant.pipeline.sources.quoted_names import check_quoted
from abeyant.pipeline.spark.columns import check_table, is_case_sensitive, operations_schema
from abeyant.pipeline.spark.errors import in_one_line
from abeyant.pipeline.spark.plans import constant_text
from abeyant.tables.defaults import DEFAULTS, SHOWN_CHARS, TYPE_NAMES, check_known, only_role, warn_of_ignored
from abeyant.tables.durations import parse_duration
from abeyant.tables.reasons import constant_error

__all__ = [
    "ONE_KEY",
    "READABLE",
    "Name",
    "cast_or_null",
    "check_constants",
    "check_mapped",
    "complete",
    "default",
    "duration_of",
    "events_from",
    "is_readable",
    "observed_from",
    "operations_from",
    "unreadable_reason",
]

Name = Literal["operations", "events"]
ONE_KEY: Final = "abeyant.one_key"
"""Metadata that marks a column `watches` as made from a column `key`: each operation has exactly one watch."""

_NUMBERS: Final = ("int", "smallint", "tinyint", "decimal", "double", "float")
READABLE: Final = {
    "timestamp": ("string", "date", "timestamp_ntz"),
    "bigint": ("string", *_NUMBERS),
    "string": ("int", "bigint", "smallint", "tinyint", "decimal"),  # decimals of scale 0
}
_OBSERVED: Final = StructType(
    [OBSERVED[name] for name in ("instance", "op_id", "kind", "start", "timeout_ms", "outcome", "waited_ms")]
)
_WATCH: Final = StructType([StructField("key", StringType()), StructField("required", LongType())])
# Texts that Spark parses as an unexpected time: a clock time (it adds today's date), a plain number (a year), and a
# zone's abbreviation, which Java takes for another zone (BST for Dhaka, PST for Los Angeles all year round).
_NO_TIME: Final = (
    r"^[\x00-\x20]*(?:[Tt]|\d+:|[+-]?\d+[\x00-\x20]*$)"
    r"|[\d\x00-\x20](?!UTC|GMT|EST|MST|HST)[A-Z]{3}[\x00-\x20]*$"
)


def operations_from(table: DataFrame, columns: Mapping[str, str] | None = None, *, survive: bool = False) -> DataFrame:
    """Return a table as `operations`; `columns` maps names of columns to Spark SQL expressions.

    Instead of `watches` there may be `key` and `required`, for one watch. Missing columns get the defaults of
    `abeyant.tables.defaults`. With `survive`, an expression that fails on a row gives null, so that the row is
    rejected; without `survive` it fails the query. Adds the column `REJECT_REASON` if a column had to be converted.
    Raises `AbeyantError` for an expression that Spark cannot analyze, `SchemaError` for a column that is missing or of
    a type that cannot be converted.
    """
    return _mapped(table, "operations", dict(columns or {}), survive)


def events_from(table: DataFrame, columns: Mapping[str, str] | None = None, *, survive: bool = False) -> DataFrame:
    """Return a table as `events`, with columns mapped and converted as by `operations_from`."""
    return _mapped(table, "events", dict(columns or {}), survive)


def observed_from(table: DataFrame, columns: Mapping[str, str] | None = None) -> DataFrame:
    """Return operations whose outcomes are in the table, with the types of `OBSERVED`. Keep other columns.

    `columns`, defaults and errors are as in `operations_from`. A value that cannot be converted becomes null.
    """
    table = _in_our_case(table, set(_OBSERVED.fieldNames()))
    table = _with_expressions(table, "operations", dict(columns or {}), survive=False)
    defaults = {
        name: default(name) for name in _OBSERVED.fieldNames() if name in DEFAULTS and name not in table.columns
    }
    table = _read(table.withColumns(defaults) if defaults else table, _OBSERVED, None).drop(REJECT_REASON)
    if "waited_ms" in table.columns and dict(table.dtypes)["waited_ms"] != "double":
        table = table.withColumn("waited_ms", F.col("waited_ms").try_cast("double"))
    return table


def complete(table: DataFrame, name: Name) -> DataFrame:
    """Return a table with every column of operations or events: its own, defaults, and watches made from a `key`.

    Decimals and floats become integers if they are whole. Integers, and decimals without fractional digits, become text
    in text columns (ids, keys). Times without a zone are in the session's zone. A table that needs no change is
    returned as it is. Raises `SchemaError` for a column that is missing or of a wrong type.
    """
    canonical = _in_our_case(table, {*_schema(table, name).fieldNames(), "key", "required"})
    try:
        result = _completed(canonical, name, table.columns, (*_NUMBERS, "bigint", "timestamp_ntz"))
    except SchemaError as error:
        raise SchemaError(f"{error}{_mend(str(error), name)}") from None
    return table if result is canonical else result


def check_constants(table: DataFrame, name: Name) -> None:
    """Raise `SchemaError` for a duration that is a constant text in Spark's plan and cannot be parsed."""
    for column, kind in table.dtypes:
        if name == "operations" and kind == "string" and column.lower() in ("timeout", "extend"):
            text = constant_text(table, column)
            if text is not None and parse_duration(text) is None:
                raise constant_error(name, f"{column} is not {TYPE_NAMES['duration']}: {text[:SHOWN_CHARS]}")


def _mend(error: str, name: Name) -> str:
    """Return a hint for an error about a missing column; '' for other errors."""
    if match := re.search("no column '(.*?)'", error):
        return f"; name your own columns: {name}.selectExpr('... AS {match[1]}', ...)"
    return ""


def check_mapped(table: Name, columns: Iterable[str]) -> None:
    """Raise `AbeyantError` if a mapping names a column that operations or events (`table`) do not have."""
    check_known(columns, _known(table), table)


def _known(table: Name) -> set[str]:
    if table == "events":
        return set(EVENTS.fieldNames())
    return {*OPERATIONS.fieldNames(), "key", "required", *HOW_LONG, *FURTHER}


def cast_or_null(value: Column, actual: str, expected: DataType) -> Column:
    """Convert a value of type `actual` (in Spark's notation) to `expected`; null where the conversion fails."""
    cast = value.try_cast(expected)
    if actual == "string" and isinstance(expected, TimestampType):
        return F.when(~value.rlike(_NO_TIME), cast)
    return F.when(value % 1 == 0, cast) if actual.startswith(("decimal", "double", "float")) else cast


def is_readable(actual: str, expected: DataType) -> bool:
    """Return whether `cast_or_null` converts values of type `actual` (in Spark's notation)."""
    if actual.startswith("decimal") and isinstance(expected, StringType) and not actual.endswith(",0)"):
        return False  # 7.00 may be 7 elsewhere
    return actual.partition("(")[0] in READABLE.get(expected.simpleString(), ())


def unreadable_reason(name: str, value: Column, actual: str, expected: DataType) -> Column:
    """Return the reason why a value of type `actual` cannot be converted to `expected`; null where it can."""
    message = F.lit(f"{name} is not {TYPE_NAMES[expected.simpleString()]}: ")
    is_unreadable = value.isNotNull() & cast_or_null(value, actual, expected).isNull()
    return F.when(is_unreadable, F.concat(message, F.left(value.cast("string"), F.lit(SHOWN_CHARS))))


def default(name: str) -> Column:
    """Return the default of a missing column."""
    value = DEFAULTS[name]
    return F.lit(value).cast("bigint" if isinstance(value, int) else "string")


def _in_our_case(table: DataFrame, known: set[str]) -> DataFrame:
    """Rename columns that differ from `known` ones only in case, if the session ignores case and no two names match."""
    if is_case_sensitive(table.sparkSession):
        return table
    lower = [column.lower() for column in table.columns]
    renames = {
        column: name
        for column, name in zip(table.columns, lower, strict=True)
        if name in known and column != name and lower.count(name) == 1
    }
    return table.withColumnsRenamed(renames) if renames else table


def _mapped(table: DataFrame, name: Name, columns: dict[str, str], survive: bool) -> DataFrame:
    column_names = [column for column in table.columns if column != REJECT_REASON]
    table = _with_expressions(table, name, columns, survive=survive)
    check_constants(table, name)
    if "key" in columns and "watches" not in columns:
        table = table.drop("watches")
    try:
        table = _completed(table, name, column_names, None)
    except SchemaError as error:
        raise SchemaError(f"{error}; --{name.removesuffix('s')} COLUMN=SQL maps a column") from None
    fields = _schema(table, name).fieldNames()
    return table.select(*fields, *(column for column in table.columns if column == REJECT_REASON))


def _with_expressions(table: DataFrame, name: Name, columns: dict[str, str], *, survive: bool) -> DataFrame:
    check_mapped(name, columns)
    if table.sparkSession.conf.get("spark.sql.ansi.doubleQuotedIdentifiers", "false") != "true":
        check_quoted(columns, table.columns, name)
    try:
        table = _in_our_case(table, _known(name))
        # All at once: expressions refer to the table's own columns, not to mapped ones.
        values = {column: F.expr(sql) for column, sql in columns.items()}
        if values:  # Spark Connect refuses an empty dict
            table = table.withColumns(null_on_error(table, values) if survive else values)
        _ = table.schema  # Spark Connect analyzes lazily: analyze here
    except AnalysisException as error:
        raise AbeyantError(f"{name}: {in_one_line(error)}") from error
    return table


def _schema(table: DataFrame, name: Name) -> StructType:
    return operations_schema(table) if name == "operations" else EVENTS


def _completed(table: DataFrame, name: Name, column_names: Sequence[str], types: Sequence[str] | None) -> DataFrame:
    """Do the work of `complete`. Convert only columns of `types`; by default, columns of all `READABLE` types."""
    warn_of_ignored(
        column_names if is_case_sensitive(table.sparkSession) else [*map(str.lower, column_names)], _known(name), name
    )
    schema = _schema(table, name)
    single = name == "operations" and "watches" not in table.columns
    role = only_role(table.columns) if single else None
    if single:
        fields = [] if role is not None else _WATCH.fields
        schema = StructType([field for field in schema.fields if field.name != "watches"] + fields)
    defaults = {
        column: default(column) for column in schema.fieldNames() if column in DEFAULTS and column not in table.columns
    }
    table = _read(table.withColumns(defaults) if defaults else table, schema, types)
    check_table(table, schema, name, given=column_names)
    if not single:
        return table
    if role is None:
        watch = F.struct("key", "required")
    else:
        watch = F.struct(
            F.col(f"{role}_key").alias("key"), F.lit(1).cast("bigint").alias("required"), F.lit(role).alias("role")
        )
    table = table.withColumn("watches", F.array(watch))
    if role is not None:
        table = table.drop(f"{role}_key")
    return table.withMetadata("watches", {ONE_KEY: True})


def _read(table: DataFrame, schema: StructType, types: Sequence[str] | None) -> DataFrame:
    """Convert columns whose types differ from `schema`; add `REJECT_REASON` if a conversion may fail."""
    conversions, reasons = {}, []
    for field in schema.fields:
        if field.name not in table.columns:
            continue
        kind, value = table.schema[field.name].dataType, F.col(field.name)
        type_name = kind.simpleString()
        if isinstance(field.dataType, DayTimeIntervalType) and type_name == "string":
            conversions[field.name], reason = duration_of(field.name, value)
            reasons.append(reason)
        elif isinstance(field.dataType, DayTimeIntervalType) and isinstance(kind, DayTimeIntervalType):
            if kind != field.dataType:  # of minutes only, say
                conversions[field.name] = value.cast(field.dataType)
        elif type_name == "timestamp_ntz" and isinstance(field.dataType, TimestampType):
            conversions[field.name] = value.cast(field.dataType)  # never fails
        elif is_readable(type_name, field.dataType) and (types is None or type_name.partition("(")[0] in types):
            conversions[field.name] = cast_or_null(value, type_name, field.dataType)
            reasons.append(unreadable_reason(field.name, value, type_name, field.dataType))
        elif field.name == "watches" and (field_types := _converted_fields(kind)):
            roles = "role" in field.dataType.simpleString()
            conversions[field.name], reason = _converted_watches(value, field_types, roles=roles)
            reasons.append(reason)
    if REJECT_REASON in table.columns:
        reasons.append(F.col(REJECT_REASON))
    if reasons and conversions:
        conversions[REJECT_REASON] = F.coalesce(*reasons)
    return table.withColumns(conversions) if conversions else table


def duration_of(name: str, text: Column) -> tuple[Column, Column]:
    """Return texts such as '15 min' as intervals, and the reason for rows whose text is not a duration."""
    micros = F.udf(_parse_duration, LongType())(text)
    message = F.lit(f"{name} is not {TYPE_NAMES['duration']}: ")
    reason = F.when(text.isNotNull() & micros.isNull(), F.concat(message, F.left(text, F.lit(SHOWN_CHARS))))
    return F.timestamp_micros(micros) - F.timestamp_micros(F.lit(0)), reason


def _parse_duration(text):  # type: ignore[no-untyped-def]  # with types Spark takes it for a function of pandas
    return parse_duration(text)


def _converted_fields(watches: DataType) -> dict[str, str]:
    """Return the types of the fields of a list of watches that need a conversion."""
    if not isinstance(watches, ArrayType) or not isinstance(watches.elementType, StructType):
        return {}
    types = {field.name: field.dataType.simpleString() for field in watches.elementType.fields}
    kinds = {field.name: field.dataType for field in _WATCH.fields}
    return {
        name: types[name]
        for name, target in kinds.items()
        if name in types and types[name] != "string" and is_readable(types[name], target)
    }


def _converted_watches(watches: Column, types: Mapping[str, str], *, roles: bool) -> tuple[Column, Column]:
    """Return lists of watches with the fields in `types` converted, and the reason where a conversion fails."""
    targets = {field.name: field.dataType for field in _WATCH.fields}

    def read(watch: Column) -> Column:
        fields = [
            (cast_or_null(watch[name], types[name], kind) if name in types else watch[name]).alias(name)
            for name, kind in targets.items()
        ]
        return F.struct(*fields, *([watch["role"].alias("role")] if roles else []))

    def reason(watch: Column) -> Column:
        return F.coalesce(*(unreadable_reason(name, watch[name], kind, targets[name]) for name, kind in types.items()))

    return F.transform(watches, read), F.get(F.filter(F.transform(watches, reason), F.isnotnull), F.lit(0))
