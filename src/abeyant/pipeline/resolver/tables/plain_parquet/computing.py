"""Compute the expressions of a scan (`spark.plans.Expression`) over Arrow batches, as Spark does over its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.spark.plans import Expression

__all__ = ["ARROW_TYPES", "compute", "kept"]

ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Arrow types by Spark's names: values are compared in these types."""

_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "not": pc.invert,
    "is null": pc.is_null,
    "is not null": pc.is_valid,
}
_OF_ALL: Final = {"and": pc.and_kleene, "or": pc.or_kleene}  # null as in SQL

Cast = Callable[[pa.Array, pa.DataType], pa.Array]


def kept(condition: Expression, batch: pa.RecordBatch, cast: Cast) -> pa.RecordBatch:
    """Return the rows for which a condition is true. `cast` converts a column, as it was read, to a type."""
    result = compute(condition, batch, cast)
    mask = result if isinstance(result, pa.Array) else pa.repeat(result, batch.num_rows)
    return batch if mask.true_count == batch.num_rows else batch.filter(mask)  # a filter copies what it keeps


def compute(expression: Expression, batch: pa.RecordBatch, cast: Cast) -> Any:
    """Return the value of an expression: an array, or a scalar for all rows. O(rows) per operator."""
    operator, *operands = expression
    if operator == "column":
        return cast(batch.column(operands[0]), ARROW_TYPES[operands[1]])
    if operator == "literal":
        return pa.scalar(operands[0], ARROW_TYPES[operands[1]])
    if operator == "cast":
        return compute(operands[0], batch, cast).cast(ARROW_TYPES[operands[1]])
    if operator == "list":
        rows = batch.num_rows
        return pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), compute(operands[0], batch, cast))
    if operator == "struct":
        values = [compute(value, batch, cast) for value in operands[1::2]]
        columns = [value if isinstance(value, pa.Array) else pa.repeat(value, batch.num_rows) for value in values]
        return pa.StructArray.from_arrays(columns, operands[::2])
    values = [compute(operand, batch, cast) for operand in operands]
    return reduce(_OF_ALL[operator], values) if operator in _OF_ALL else _FUNCTIONS[operator](*values)
