"""Handle SQL from the user: find the fields that expressions name, make values that fail null, run queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.errors import in_one_line

__all__ = ["fields_named", "null_on_error", "rows_of_query"]


def fields_named(spark: SparkSession, expressions: Mapping[str, str], known: StructType, table: str) -> StructType:
    """Return a field of type string for each name in the expressions that `known` lacks. Uses Spark's analyzer.

    Raises `AbeyantError`, which names the expression, if Spark cannot parse or analyze it, or if it is constant and
    Spark cannot evaluate it.
    """
    fields: dict[str, StructField] = {}
    for column, sql in expressions.items():
        try:
            while (name := _unknown_name(spark, sql, StructType([*known.fields, *fields.values()]))) is not None:
                fields[name] = StructField(name, StringType())
            _try_constant(spark, sql)
        except PySparkException as error:
            raise AbeyantError(f"{table}: {column}={sql}: {in_one_line(error)}") from error
    return StructType(list(fields.values()))


def _unknown_name(spark: SparkSession, sql: str, fields: StructType) -> str | None:
    """Return a name in the expression that is not a field, or None; raise AnalysisException for any other error."""
    try:
        _ = spark.createDataFrame([], fields).select(F.expr(sql)).schema
    except AnalysisException as error:
        name = (error.getMessageParameters() or {}).get("objectName", "")
        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN") or "`.`" in name:
            raise
        return name.strip("`").replace("``", "`")
    return None


def _try_constant(spark: SparkSession, sql: str) -> None:
    try:
        constant = spark.sql(f"SELECT {sql}")
    except AnalysisException:
        return  # it names a field
    constant.collect()


def rows_of_query(rows: DataFrame, query: str, name: str) -> DataFrame:
    """Return the result of a SQL query in which `name` is the table of these rows. Raises what Spark raises."""
    # A CTE instead of a view: it cannot clash with the session's views, and leaves none behind.
    text = query.replace("{", "{{").replace("}", "}}")
    table = rows.sparkSession.sql(f"WITH {name} AS (SELECT * FROM {{rows}}) SELECT * FROM ({text}\n)", rows=rows)
    _ = table.schema  # Spark Connect analyzes lazily: analyze here
    return table


def null_on_error(table: DataFrame, expressions: Mapping[str, Column]) -> dict[str, Column]:
    """Return the expressions, changed to give null where they would fail the query: a bad row must not stop a stream.

    SQL has `try_` forms of a few functions only. But `try_to_binary` is null if evaluating its argument fails. So each
    value is converted to text, passed through `try_to_binary`, and converted back. Other types than those of our
    columns stay as they are.
    """
    kinds = table.select(*(value.alias(name) for name, value in expressions.items())).schema
    return {name: _null_on_error(value, kinds[name].dataType) for name, value in expressions.items()}


def _null_on_error(value: Column, kind: DataType) -> Column:
    if isinstance(kind, TimestampType):  # not as text: that has a time zone, in which an hour may occur twice
        return F.timestamp_micros(_try(F.unix_micros(value).cast("string")).cast("bigint"))
    if isinstance(kind, ArrayType):
        return F.from_json(_try(F.to_json(value)), kind)
    return _try(value.cast("string")).cast(kind) if isinstance(kind, _AS_TEXT) else value


def _try(text: Column) -> Column:
    return F.try_to_binary(text, F.lit("utf-8")).cast("string")


_AS_TEXT: Final = (StringType, ByteType, ShortType, IntegerType, LongType, DateType, TimestampNTZType)
