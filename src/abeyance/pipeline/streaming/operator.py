"""`resolve_stream`: operations and events as streams in, outcomes and what is set aside out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from abeyance.pipeline.schemas import OUTCOMES
from abeyance.pipeline.streaming.options import DEFAULT_LATENESS, DEFAULT_SHARDS, Deadline, Time

__all__ = ["ANSWERS", "ASIDE", "aside_of", "outcomes_of", "resolve_stream"]

ASIDE: Final = StructType(
    [
        StructField("table", StringType()),  # `operations` or `events`
        StructField("reason", StringType()),  # as `invalid_operations` and `invalid_events`, or `late: ...`
        StructField("row", StringType()),  # the whole row, as JSON
    ]
)
"""Rows that have no part in any outcome, and why."""

ANSWERS: Final = StructType([*OUTCOMES.fields, *ASIDE.fields])
"""Outcomes (`reason` is null) and rows set aside (`outcome` is null)."""


def resolve_stream(
    operations: DataFrame,
    events: DataFrame,
    *,
    deadline: Deadline = "inclusive",
    lateness: float | timedelta = DEFAULT_LATENESS,
    time: Time = "event",
    tick: float | timedelta | None = 1.0,
    end_of_input: str | Path | None = None,
    forget_after: float | timedelta | None = None,
    shards: int = DEFAULT_SHARDS,
) -> DataFrame:
    """Resolve two streams: return outcomes and rows set aside as one stream (`ANSWERS`).

    Take it apart with `outcomes_of` and `aside_of`, or give it whole to `foreachBatch(ParquetSink(out))` or
    `foreachBatch(TableSink(file))`, which keep both apart and write each batch once.
    """
    raise NotImplementedError


def outcomes_of(answers: DataFrame) -> DataFrame:
    """Return the outcomes among the answers (`schemas.OUTCOMES`)."""
    return answers.where("reason IS NULL").select(*OUTCOMES.fieldNames())


def aside_of(answers: DataFrame) -> DataFrame:
    """Return the rows set aside among the answers (`ASIDE`)."""
    return answers.where("reason IS NOT NULL").select(*ASIDE.fieldNames())


PENDING_WATCHES: Final = StructType(
    [
        StructField("instance", StringType()),
        StructField("op_id", StringType()),
        StructField("kind", StringType()),
        StructField("key", StringType()),
        StructField("required", LongType()),
        StructField("start", TimestampType()),
        StructField("deadline", TimestampType()),
    ]
)
