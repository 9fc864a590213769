"""Traces of which all is known: operations, events, and what became of each in its own time and in a long one."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.kernels.replay import NEVER
from pipeline.resolve_traces import Trace, by_brute_force, some_traces
from pipeline.trace_tables import tables

__all__ = ["NEVER", "Known", "ends", "known_tables", "traces", "with_timeout"]

LONG_MS = 10**6


class Known(NamedTuple):
    operations: DataFrame
    events: DataFrame
    outcomes: DataFrame
    """Had each been watched for long."""
    log: DataFrame
    """The operations and their outcomes in their own time."""


@cache
def traces() -> list[Trace]:
    return some_traces(200, seed=7)


def with_timeout(trace: Trace, timeout_ms: int | None) -> Trace:
    if timeout_ms is None:
        return trace
    return trace._replace(operations=[op._replace(timeout_ms=timeout_ms) for op in trace.operations])


@cache
def ends(number: int) -> dict[str, int]:
    """When the condition of each operation of a trace comes true, however long it takes."""
    outcomes = by_brute_force(with_timeout(traces()[number], LONG_MS), "inclusive")
    return {op_id: at if outcome == "completed" else NEVER for op_id, (outcome, at) in outcomes.items()}


def known_tables(spark: SparkSession) -> Known:
    """Each trace is an instance, t0, t1, ...; the tables are kept."""
    operations, events = (table.persist() for table in tables(spark, traces()))
    patient = operations.withColumn("timeout_ms", F.lit(LONG_MS).cast("long"))
    outcomes = pipeline.resolve(patient, events).persist()
    own = pipeline.resolve(operations, events).drop("kind", "at")
    return Known(operations, events, outcomes, operations.join(own, ["instance", "op_id"]).persist())
