"""Traces of operations for the engine: when each started, its time-out, and when its condition came true.

`end_us` is what is known of an operation's end. A value from 0 on is the time at which the condition came true. A
negative value is `~limit`: the condition had not come true by `limit`. If a log shows that an operation expired after
500 ms, its condition took longer than 500 ms; under a longer time-out its outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.replayer.configurations import Configuration
from abeyant.pipeline.replayer.foresight import watched_for
from abeyant.pipeline.schemas import OBSERVED, OPERATIONS, OUTCOMES, SchemaError
from abeyant.pipeline.spark.columns import check_table

__all__ = ["OWN", "traces"]

OWN: Final = -1
"""The value of `timeout_us` for an operation without a time-out."""

_LONGEST_US: Final = 1 << 60
_NEEDED: Final = {"instance", "start", "timeout_ms", "outcome", "waited_ms"}


def traces(
    operations: DataFrame, ends: DataFrame | None, configurations: Sequence[Configuration], *, keys: bool
) -> DataFrame:
    """Return one row per operation: `instance`, `start_us`, `timeout_us`, `end_us`, and with `keys` hashes of its keys.

    `end_us` is null where the operation cannot be replayed: no start, a start before 1970, an end that is not known.
    """
    known = _known(operations, ends, configurations, keys=keys)
    timeout_us = F.when(F.col("timeout_ms").between(0, _LONGEST_US // 1000), F.col("timeout_ms") * 1000)
    start_us = F.unix_micros("start")
    wait_us = F.round(F.col("waited_ms") * 1000).try_cast("long")
    # An operation that expired waited for at least its time-out, even if a log shows less: Kafka is up to 1 ms early.
    limit = start_us + F.greatest(wait_us, timeout_us)
    end_us = F.when(F.col("outcome") == "completed", start_us + wait_us).when(
        F.col("outcome") == "expired", F.bitwise_not(limit)
    )
    columns = [
        F.coalesce("instance", F.lit("")).alias("instance"),
        start_us.alias("start_us"),
        F.coalesce(timeout_us, F.lit(OWN)).alias("timeout_us"),
        F.when((start_us >= 0) & wait_us.between(0, _LONGEST_US), end_us).alias("end_us"),
    ]
    if keys:
        hashes = F.transform("watches", lambda watch: F.xxhash64(watch["key"]))
        columns.append(F.coalesce(hashes, F.array().cast("array<bigint>")).alias("keys"))
    return known.select(*columns)


def _known(
    operations: DataFrame, ends: DataFrame | None, configurations: Sequence[Configuration], *, keys: bool
) -> DataFrame:
    """Return operations with `outcome` and `waited_ms`: their own, or from `ends` (outcomes, or events to resolve)."""
    if ends is None:
        needed = {*_NEEDED, "watches"} if keys else _NEEDED
        check_table(operations, StructType([field for field in OBSERVED.fields if field.name in needed]), "operations")
        return operations
    if "progress" in ends.columns:
        asked_ms = max((c.timeout_ms for c in configurations if c.timeout_ms is not None), default=0)
        tick_ms = max(ceil(c.tick_ms) for c in configurations)
        return watched_for(operations, ends, asked_ms, beyond_ms=tick_ms, keys=keys)
    check_table(operations, OPERATIONS, "operations")
    if "outcome" in ends.columns:
        check_table(ends, OUTCOMES, "outcomes")
        ended = ends.select("instance", "op_id", "outcome", "waited_ms")
        return operations.drop("outcome", "waited_ms").join(ended, ["instance", "op_id"], "left")
    found = ", ".join(ends.columns)
    raise SchemaError(
        f"ends has neither a column 'progress', as events do, nor 'outcome', as outcomes do (columns: {found})"
    )
