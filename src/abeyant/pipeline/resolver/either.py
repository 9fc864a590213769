"""`resolve`, for whole tables and for streams."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pyspark.sql import DataFrame

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver import streams, tables
from abeyant.pipeline.resolver.given import Given, KnownRows, as_dataframe, session_of
from abeyant.pipeline.resolver.streams.options import Time
from abeyant.pipeline.resolver.tables.hot_keys import Sample
from abeyant.pipeline.spark.notebook import watch_cells
from abeyant.tables.calendar import Calendar
from abeyant.tables.rules import Combine, Count, Deadline, Holds, Serves, Within

__all__ = ["ResolveOptions", "resolve"]


class ResolveOptions(TypedDict, total=False):
    """Options of `resolve`, besides its tables."""

    deadline: Deadline
    count: Count
    combine: Combine
    holds: Holds
    serves: Serves
    within: Within
    calendar: Calendar | None
    details: bool
    # for whole tables only
    unique_ids: bool
    sample: Sample | None
    # for streams only
    lateness: float | timedelta
    time: Time
    tick: float | timedelta | None
    end_of_input: str | Path | None
    forget_after: float | timedelta | None
    shards: int


def resolve(operations: Given, events: Given, **options: Unpack[ResolveOptions]) -> DataFrame:
    """Return the outcome of every operation (`schemas.OUTCOMES`): completed or expired, when, and after what wait.

    An operation completes at the first time from its `start` to `start + timeout_ms`, both included, at which `all` or
    `any` of its watches are reached: the greatest progress of the key up to then is at least `required`. Otherwise it
    expires at the end of that time (laws O1-O4). With `deadline="exclusive"` progress exactly at the end is too late.

    A table is a Spark DataFrame, or anything with an Arrow interface: pandas, Polars, DuckDB, pyarrow. An Arrow table
    is moved to the other table's session, or the active session; its times without a zone are in the session's zone.

    For whole tables this calls `abeyant.pipeline.resolver.tables.resolve`, for two streams it returns the outcomes of
    `abeyant.pipeline.resolve_stream`. Both take `deadline`, `count`, `combine`, `holds`, `serves`, `within`, `calendar`
    and `details`; see there. Tables also take `unique_ids` and `sample`, streams `lateness`, `time`, `tick`,
    `end_of_input`, `forget_after` and `shards`. Rejected rows of streams are counted (`batch_counts`) and not kept: use
    `resolve_stream` to keep them.

    The command `abeyant resolve` does the same for tables in files, `abeyant stream` for streams.

    `RejectedRowsWarning` names the reason when all rows of a table are rejected, or at least 95 % of 20 or more rows
    that have all values. Another warning names a key of each table when ten operations or more have no key in common
    with the events. Both warnings need rows that can be checked without a Spark job: tables with an Arrow interface,
    and DataFrames made of rows of this process. For other DataFrames, count `rejected_operations(operations)`.

    In a notebook, after the first call for whole tables, cells show Spark's progress: see `notebook_progress`.

    Raises `AbeyantError` for one table with one stream, and if there is no session; `SchemaError` for a table without
    the columns needed, and if every row has the same unreadable `timeout` or `extend`; ValueError for a wrong value;
    TypeError for an argument that is not a table, for an option of streams with tables, or of tables with streams.

    Examples:
        >>> order = "'order-1' op_id, 'paid/1' key, TIMESTAMP '2026-11-26 09:00' start, 900000 timeout_ms"
        >>> orders = spark.sql(f"SELECT {order}")
        >>> events = spark.sql("SELECT 'paid/1' key, TIMESTAMP '2026-11-26 09:10' at")
        >>> resolve(orders, events).first().outcome
        'completed'
    """
    arguments: dict[str, Any] = dict(options)
    spark = session_of([operations, events])
    from abeyant.tables.reading import check_columns  # pandas comes with it

    check_columns(operations, events)
    known_rows = KnownRows()
    operations = as_dataframe(operations, "operations", spark, checked=known_rows)
    events = as_dataframe(events, "events", spark, checked=known_rows)
    known_rows.warn_of_unmatched(stacklevel=2)
    if operations.isStreaming and events.isStreaming:
        return streams.outcomes_of(streams.resolve_stream(operations, events, **arguments))
    if operations.isStreaming or events.isStreaming:
        table, stream = ("operations", "events") if events.isStreaming else ("events", "operations")
        raise AbeyantError(
            f"{stream} is a stream and {table} is not: read both with spark.readStream, or both with spark.read "
            "(a stream can read a complete table, too, with trigger(availableNow=True))"
        )
    watch_cells(spark)
    return tables.resolve(operations, events, **arguments)
