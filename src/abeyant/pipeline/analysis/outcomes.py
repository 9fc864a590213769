"""Count the keys of expired operations, and outcomes that cannot be read as files, in Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.results.outcome_counts import SAMPLED, OutcomeCounts, keys_of
from abeyant.pipeline.results.waits import BINS_PER_E, COUNTED_BY, MOST_KEYS

__all__ = ["binned", "expired_keys", "most_expired"]

_FEW: Final = 100
"""Maximum expired operations whose keys are counted in this process."""


def binned(outcomes: DataFrame) -> DataFrame:
    """Count outcomes that cannot be read as files by `COUNTED_BY`, with the longest wait, in one Spark job.

    An operation that stays pending has no `waited_ms`: its `bin` is null.
    """
    length = F.floor(F.log1p(F.col("waited_ms") * 1000) * BINS_PER_E).alias("bin")
    rows = outcomes.select(F.coalesce("kind", F.lit("")).alias("kind"), "outcome", length, "waited_ms")
    aggregates = F.max("waited_ms").alias("most_ms"), F.count(F.lit(1)).alias("operations")
    return rows.groupBy(*COUNTED_BY).agg(*aggregates)


def expired_keys(ended: OutcomeCounts, operations: DataFrame) -> pa.Table:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`.

    This scans the `operations` once. If only one expired operation in `one_in` was sampled, `expired` is an estimate.
    An operation with several watches counts on each of its keys.
    """
    if ended.sample is None:
        raise ValueError("the outcomes were counted without a sample of expired operations: their keys are unknown")
    if ended.sample.num_rows <= _FEW and ended.sample.num_rows == ended.expired:
        return _keys_of_few(ended, ended.sample, operations)
    one_in = ended.expired / max(ended.sample.num_rows, 1)
    sample = operations.sparkSession.createDataFrame(ended.sample)
    return most_expired(operations.join(F.broadcast(sample), SAMPLED), one_in).toArrow()


def _keys_of_few(ended: OutcomeCounts, expired: pa.Table, operations: DataFrame) -> pa.Table:
    """Count the keys of a few operations in this process: Spark would take four stages, half a second."""
    # The query lists instances and ids, so it may also find one operation's instance with another's id.
    conditions = [F.col(name).isin(expired[name].unique().to_pylist()) for name in SAMPLED]
    rows = operations.where(conditions[0] & conditions[1]).select(*SAMPLED, "watches.key").toArrow()
    return keys_of(ended, rows)


def most_expired(struck: DataFrame, one_in: float = 1.0) -> DataFrame:
    """Return the keys of expired operations, by falling number of operations: (instance, key, expired, one_in)."""
    keys = F.explode("watches.key").alias("key")  # so that Spark reads nothing else of the watches
    # A key that an operation names twice, and a duplicate operation, count once.
    pairs = struck.select("instance", "op_id", keys).where(F.col("key").isNotNull()).distinct()
    return (
        pairs.groupBy("instance", "key")
        .agg(F.round(F.count(F.lit(1)) * one_in).cast("long").alias("expired"))
        .orderBy(F.col("expired").desc(), "instance", "key")
        .limit(MOST_KEYS)
        .withColumn("one_in", F.lit(one_in))
    )
