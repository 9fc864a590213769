"""SQL expressions that a user gave: which fields they name, and how to survive the row on which one fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from abeyance.errors import AbeyanceError
from abeyance.pipeline.spark.errors import in_one_line

__all__ = ["fields_named", "forgiving"]

_CATALYST: Final = "org.apache.spark.sql.catalyst.expressions.TryEval"


def fields_named(spark: SparkSession, expressions: Mapping[str, str], known: StructType, table: str) -> StructType:
    """Return the fields that the expressions name and `known` lacks, as text. Spark's own analysis finds them.

    Raises `AbeyanceError`, naming the expression, for one that Spark does not understand, or that fails on every row
    because it names no field.
    """
    found: dict[str, StructField] = {}
    for column, sql in expressions.items():
        try:
            while (name := _unknown_name(spark, sql, StructType([*known.fields, *found.values()]))) is not None:
                found[name] = StructField(name, StringType())
            _try_constant(spark, sql)
        except PySparkException as error:
            raise AbeyanceError(f"{table}: {column}={sql}: {in_one_line(error)}") from error
    return StructType(list(found.values()))


def _unknown_name(spark: SparkSession, sql: str, fields: StructType) -> str | None:
    """Return a name in the expression that is none of the fields; raise AnalysisException for any other fault."""
    try:
        spark.createDataFrame([], fields).select(F.expr(sql))
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


def forgiving(spark: SparkSession, expression: Column) -> Column:
    """Return an expression that is null where the given one would end the query: one bad row must not stop a stream.

    SQL has such forms of single functions only (try_cast, try_add); Spark itself makes them with this one.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    try_eval = getattr(jvm, _CATALYST)
    return Column(bridge.column(try_eval(bridge.expression(expression._jc))))
