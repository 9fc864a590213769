"""Convert Spark schemas to Arrow, for batches that Python workers make.

PySpark's own function is private, and its arguments change between versions.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

__all__ = ["arrow_schema"]

_SIMPLE: Final[dict[type[DataType], Any]] = {
    StringType: pa.string(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    DoubleType: pa.float64(),
    TimestampType: pa.timestamp("us", "UTC"),
    DayTimeIntervalType: pa.duration("us"),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a Spark schema as an Arrow schema, with times in UTC. Raises TypeError for a type that no table has."""
    return pa.schema([_field(field) for field in schema.fields])


def _field(field: StructField) -> pa.Field:
    return pa.field(field.name, _kind(field.dataType), field.nullable)


def _kind(kind: DataType) -> pa.DataType:
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _kind(kind.elementType), kind.containsNull))
    if isinstance(kind, StructType):
        return pa.struct([_field(field) for field in kind.fields])
    if type(kind) not in _SIMPLE:
        raise TypeError(f"no Arrow type for {kind.simpleString()}")
    return _SIMPLE[type(kind)]
