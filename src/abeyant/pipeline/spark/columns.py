"""Check a table's columns against a schema, and select the columns that the schema names."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DayTimeIntervalType, StringType, StructField, StructType, TimestampType

from abeyant.errors import SchemaError, listed
from abeyant.pipeline.schemas import FURTHER, HOW_LONG, OPERATIONS, WATCHES

__all__ = ["check_table", "columns_of", "conversion", "is_case_sensitive", "operations_schema"]


def check_table(table: DataFrame, schema: StructType, name: str, *, given: Sequence[str] | None = None) -> None:
    """Raise `SchemaError` unless `table` has every column of `schema` with its type; it may have further columns.

    The error lists the columns `given` (default: the columns of `table`, which may include columns that its user did
    not give). Names are compared without case unless `spark.sql.caseSensitive` is set. Nullability is not compared, as
    Spark widens it at every step.
    """
    fold_case = str if is_case_sensitive(table.sparkSession) else str.lower
    for field in schema.fields:
        matches = [column for column in table.schema.fields if fold_case(column.name) == fold_case(field.name)]
        expected = field.dataType.simpleString()
        if not matches:
            actual = listed(table.columns if given is None else given)
            raise SchemaError(f"{name}: no column {field.name!r}, expected {expected} (columns: {actual})")
        if len(matches) > 1:
            actual = ", ".join(column.name for column in matches)
            raise SchemaError(
                f"{name}: {len(matches)} columns {field.name!r} ({actual}): rename all but one, or tell them apart by "
                "their case with spark.sql.caseSensitive"
            )
        actual = matches[0].dataType.simpleString()
        if fold_case(actual) != fold_case(expected):
            hint = conversion(field.name, actual, expected)
            raise SchemaError(f"{name}: column {field.name!r} is {actual}, expected {expected}{hint}")


def conversion(column: str, actual: str, expected: str) -> str:
    """Return "; " and a hint with SQL that converts `column` to the type `expected`; '' if none is obvious."""
    kind = actual.partition("(")[0]
    if expected == "string" and not actual.startswith(("array", "map", "struct")):
        text = {
            "binary": f"lower(hex({column}))",
            "double": f"string(bigint({column}))",
            "float": f"string(bigint({column}))",
        }
        return f"; {text.get(actual, f'string({column})')} makes a text of it"
    if expected != "timestamp":
        return ""
    parsed = f"to_timestamp({column}) makes a time of it, try_to_timestamp({column}) a null of a text that is none"
    times = {
        "string": parsed,
        "date": f"timestamp({column}) is its midnight",
        "timestamp_ntz": f"timestamp({column}) takes it in the session's time zone",
    }
    numbers = dict.fromkeys(
        ("bigint", "int", "smallint", "tinyint", "decimal", "double", "float"),
        f"timestamp_millis({column}) or timestamp_seconds({column}) makes a time of a number",
    )
    hint = (times | numbers).get(kind)
    return f"; {hint}" if hint else ""


def operations_schema(table: DataFrame) -> StructType:
    """Return the columns that `resolve` reads: `OPERATIONS`, adapted to a table's time limit and optional columns.

    Roles of watches are optional too.
    """
    fold_case = str if is_case_sensitive(table.sparkSession) else str.lower
    kinds = {fold_case(field.name): field.dataType for field in table.schema.fields}
    time_limit = next((name for name in HOW_LONG if name in kinds), HOW_LONG[0])
    changed: dict[str, StructField] = {}
    if time_limit != HOW_LONG[0]:
        changed["timeout_ms"] = StructField(
            time_limit, TimestampType() if time_limit == "deadline" else DayTimeIntervalType()
        )
    watches = kinds.get("watches")
    if isinstance(watches, ArrayType) and isinstance(watches.elementType, StructType):
        names = [name.lower() for name in watches.elementType.fieldNames()]
        if "role" in names:
            role = StructField("role", StringType())
            element_type = StructType([*WATCHES.elementType.fields, role])  # type: ignore[attr-defined]
            changed["watches"] = StructField("watches", ArrayType(element_type, False))
    further = [StructField(name, kind) for name, kind in FURTHER.items() if name in kinds]
    return StructType([changed.get(field.name, field) for field in OPERATIONS.fields] + further)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether this session distinguishes column names by case. By default, a session does not."""
    return spark.conf.get("spark.sql.caseSensitive") == "true"


def columns_of(table: DataFrame, schema: StructType) -> DataFrame:
    """Select the columns of `schema`, cast to its types and spelled as in `schema`, down to the fields of structs."""
    if table.schema.simpleString() == schema.simpleString():
        return table  # Spark would copy rows that are in the plan itself
    kinds = {column.name.lower(): column.dataType.simpleString() for column in table.schema.fields}
    columns = []
    for field in schema.fields:
        kind = field.dataType.simpleString()
        column = F.col(field.name)
        # A cast that changes nothing but whether there may be nulls would copy each list.
        columns.append((column if kinds[field.name.lower()] == kind else column.cast(kind)).alias(field.name))
    return table.select(*columns)
