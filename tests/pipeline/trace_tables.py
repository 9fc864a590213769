"""Traces' rows as the tables `operations` and `events`, in Arrow and in Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.resolve_traces import Event, Op, Trace

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_US: Final = int(EPOCH.timestamp()) * 1_000_000

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64())]))
ARROW_OPERATIONS: Final = pa.schema(
    [
        ("instance", pa.string()),
        ("op_id", pa.string()),
        ("kind", pa.string()),
        ("start", TIME),
        ("timeout_ms", pa.int64()),
        ("watches", WATCHES),
        ("condition", pa.string()),
    ]
)
ARROW_EVENTS: Final = pa.schema(
    [("instance", pa.string()), ("key", pa.string()), ("at", TIME), ("progress", pa.int64())]
)


def operation_row(op: Op, instance: str = "i") -> dict[str, Any]:
    return {
        "instance": instance,
        "op_id": op.op_id,
        "kind": "TEST",
        "start": EPOCH_US + op.start,
        "timeout_ms": op.timeout_ms,
        "watches": [watch._asdict() for watch in op.watches],
        "condition": op.condition,
    }


def event_row(event: Event, instance: str = "i") -> dict[str, Any]:
    return {"instance": instance, "key": event.key, "at": EPOCH_US + event.at, "progress": event.progress}


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
