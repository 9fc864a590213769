"""Traces' rows as the tables `operations` and `events`, in Arrow and in Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.resolve_traces import Trace
from pipeline.trace_rows import ARROW_EVENTS, ARROW_OPERATIONS, EPOCH, EPOCH_US, event_row, operation_row

__all__ = [
    "ARROW_EVENTS",
    "ARROW_OPERATIONS",
    "EPOCH",
    "EPOCH_US",
    "event_row",
    "events_table",
    "operation_row",
    "operations_table",
    "table",
    "tables",
]


def table(spark: SparkSession, rows: Sequence[dict[str, Any]], schema: pa.Schema, parts: int = 3) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema)).repartition(parts)


def operations_table(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> DataFrame:
    return table(spark, rows, ARROW_OPERATIONS)


def events_table(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> DataFrame:
    return table(spark, rows, ARROW_EVENTS)


def tables(spark: SparkSession, traces: Sequence[Trace]) -> tuple[DataFrame, DataFrame]:
    """All traces in one pair of tables, each an instance of its own; the events of all are mixed."""
    operations = [operation_row(op, f"t{n}") for n, trace in enumerate(traces) for op in trace.operations]
    events = [event_row(event, f"t{n}") for n, trace in enumerate(traces) for event in trace.events]
    random.Random(5).shuffle(events)
    return operations_table(spark, operations), events_table(spark, events)
