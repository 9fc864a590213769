"""The tables of the pipeline: their Spark schemas, and a check that says what is wrong with one.

Times are Spark timestamps (microseconds); numbers carry their unit in the name. In every table that sums over
instances, the instance `*` stands for all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from abeyance.errors import AbeyanceError

__all__ = ["ALL_INSTANCES", "EVENTS", "OPERATIONS", "OUTCOMES", "TABLES", "SchemaError", "check_table"]

ALL_INSTANCES: Final = "*"

_STRING, _LONG, _DOUBLE, _TIME = StringType(), LongType(), DoubleType(), TimestampType()

WATCHES: Final = ArrayType(StructType([StructField("key", _STRING, False), StructField("required", _LONG)]), False)


class SchemaError(AbeyanceError):
    """A table lacks a column, or has one of another type; the message names it, what it is and should be."""


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


OPERATIONS: Final = _table(
    instance=_STRING,  # one purgatory: a broker, a tenant
    op_id=_STRING,  # unique within its instance; from a log: the file and line, `kafka-request.log:17`
    kind=_STRING,  # PRODUCE, FETCH_CONSUMER, ...
    start=_TIME,  # when the wait began
    timeout_ms=_LONG,  # null where the operation has none or the log does not tell it
    watches=WATCHES,  # `required`: the least progress of the key; null where unknown
    condition=_STRING,  # `all` or `any` of the watches
)
"""What `resolve`, the replay and the analysis take."""

OBSERVED: Final = StructType(
    [
        *OPERATIONS.fields,
        StructField("outcome", _STRING),  # `completed`, `expired`, null where the log cannot tell
        StructField("waited_ms", _DOUBLE),  # 0 for an operation that completed at its start
        StructField("api", _STRING),  # the request's name in the protocol, as in requests_by_kind
        StructField("error_code", IntegerType()),  # Kafka's, 0 for none, null where no response is logged
        StructField("client_id", _STRING),
    ]
)
"""Operations of which a log knows how they ended."""

EVENTS: Final = _table(instance=_STRING, key=_STRING, at=_TIME, progress=_LONG)

UNREADABLE: Final = "_unreadable"
UNREADABLE_ROW: Final = "_unreadable_row"
"""What a source may add to operations and events: why a row cannot be read (null where it can), and the row itself."""

OUTCOMES: Final = _table(instance=_STRING, op_id=_STRING, kind=_STRING, outcome=_STRING, at=_TIME, waited_ms=_DOUBLE)

REJECTED: Final = _table(
    instance=_STRING,
    file=_STRING,
    line_number=_LONG,  # from 1; where a file is damaged, the line that could not be reached
    reason=_STRING,
    excerpt=_STRING,  # the beginning of the line, printable
)

REQUESTS_BY_KIND: Final = _table(instance=_STRING, api=_STRING, requests=_LONG, waited=_LONG)

_PERCENTILES: Final = {"p50_ms": _DOUBLE, "p95_ms": _DOUBLE, "p99_ms": _DOUBLE, "max_ms": _DOUBLE}

SUMMARY: Final = _table(
    instance=_STRING,
    kind=_STRING,
    operations=_LONG,
    waited=_LONG,  # how many waited at all
    completed=_LONG,
    expired=_LONG,
    unknown=_LONG,
    expired_share=_DOUBLE,  # of those whose outcome is known; null when none is
    **_PERCENTILES,  # nearest rank, over all operations, those that did not wait among them
)

BY_KEY: Final = _table(
    instance=_STRING,
    kind=_STRING,
    key=_STRING,
    operations=_LONG,
    completed=_LONG,
    expired=_LONG,
    expired_share=_DOUBLE,
    **_PERCENTILES,
    total_waited_ms=_DOUBLE,
)

PENDING: Final = _table(instance=_STRING, kind=_STRING, at=_TIME, pending=_LONG)
"""One row for each instant at which the number changes: `pending` holds from `at` to the next row."""

TIMEOUT_CURVE: Final = _table(
    instance=_STRING,
    kind=_STRING,
    timeout_ms=_DOUBLE,
    at_risk=_LONG,  # operations that waited at least so long
    completed=_LONG,  # of those, how many completed exactly here
    share_expiring=_DOUBLE,  # what share would expire had the time-out been this
    low=_DOUBLE,  # 95 % confidence band of share_expiring
    high=_DOUBLE,
)

WAITS: Final = _table(
    instance=_STRING,
    kind=_STRING,
    outcome=_STRING,  # `completed`, `expired`, `unknown`
    low_ms=_DOUBLE,  # waits in [low_ms, high_ms); both 0 for those that did not wait
    high_ms=_DOUBLE,
    operations=_LONG,
)

TABLES: Final[Mapping[str, StructType]] = {
    "operations": OBSERVED,
    "rejected": REJECTED,
    "requests_by_kind": REQUESTS_BY_KIND,
    "summary": SUMMARY,
    "by_key": BY_KEY,
    "pending": PENDING,
    "pending_plot": PENDING,
    "timeout_curve": TIMEOUT_CURVE,
    "waits": WAITS,
}
"""The tables of an analysis, by the name of their Parquet directory."""


def check_table(table: DataFrame, schema: StructType, name: str) -> None:
    """Raise `SchemaError` unless `table` has every column of `schema` with its type; further ones are fine.

    Whether a column may be null is not compared: Spark widens that at every step.
    """
    for field in schema.fields:
        if field.name not in table.columns:
            found = ", ".join(table.columns) or "none"
            raise SchemaError(
                f"{name}: no column {field.name!r}, expected {field.dataType.simpleString()} (columns: {found})"
            )
        found_type = table.schema[field.name].dataType
        if found_type.simpleString() != field.dataType.simpleString():
            raise SchemaError(
                f"{name}: column {field.name!r} is {found_type.simpleString()}, "
                f"expected {field.dataType.simpleString()}"
            )
