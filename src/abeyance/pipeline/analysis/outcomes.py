"""What the files of outcomes come to: one pass over them in this process, and a look for the keys of what expired.

Not by Spark: the columns are few, so Arrow and numpy need a fraction of a microsecond per row, while even the smallest
of Spark's jobs takes a second. Memory: a batch of rows, the bins, and the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.results.waits import BINS_PER_E, COUNTED_BY, MOST_KEYS, Waits, bins

__all__ = [
    "EXACT_UP_TO",
    "Ended",
    "binned",
    "counted_reasons",
    "expired_keys",
    "look_at_outcomes",
    "most_expired",
]

EXACT_UP_TO: Final = 100_000
"""Of more expired operations than this, the keys of at most so many are looked up, drawn at random."""

_BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True)
class Ended:
    """What one pass over outcomes found."""

    waits: pa.Table
    """(kind, outcome, bin, most_ms, operations): counts, and the longest wait of each bin; `kind` '' where none is."""
    sample: pa.Table | None = None
    """(instance, op_id) of operations that expired: all, or `EXACT_UP_TO` at most. None where none were drawn."""

    @property
    def expired(self) -> int:
        """How many operations expired."""
        of_them = pc.equal(self.waits["outcome"], "expired")
        return pc.sum(self.waits["operations"].filter(of_them)).as_py() or 0


def look_at_outcomes(files: Iterable[Path]) -> Ended:
    """Count outcomes by kind, outcome and length of wait, in bins of 0.5 %, and draw a sample of those that expired."""
    random = np.random.default_rng(0)
    waits = Waits()
    kept = pa.table({"instance": pa.array([], pa.string()), "op_id": pa.array([], pa.string())})
    one_in = 1
    for file in files:
        columns = ["instance", "op_id", "kind", "outcome", "waited_ms"]
        for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=columns):
            waits.add(bins(batch))
            ended = batch.select(kept.column_names).filter(pc.equal(batch.column("outcome"), "expired"))
            drawn = ended.filter(pa.array(random.random(ended.num_rows) * one_in < 1))
            kept = pa.concat_tables([kept, pa.Table.from_batches([drawn]).cast(kept.schema)])
            while kept.num_rows > EXACT_UP_TO:
                one_in *= 2
                kept = kept.filter(pa.array(random.random(kept.num_rows) < 0.5)).combine_chunks()
    # In one piece: of a table with empty chunks Spark 4.3 loses rows.
    return Ended(waits.table(), kept.combine_chunks())


def binned(outcomes: DataFrame) -> DataFrame:
    """Return the same counts, made by Spark in one job: for outcomes that cannot be read as files."""
    length = F.floor(F.log1p(F.col("waited_ms") * 1000) * BINS_PER_E).alias("bin")
    rows = outcomes.select(F.coalesce("kind", F.lit("")).alias("kind"), "outcome", length, "waited_ms")
    counted = F.max("waited_ms").alias("most_ms"), F.count(F.lit(1)).alias("operations")
    return rows.groupBy(*COUNTED_BY).agg(*counted)


def expired_keys(ended: Ended, operations: DataFrame) -> DataFrame:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`.

    One scan of the `operations`. Where only one in `one_in` was looked up, `expired` is an estimate. An operation with
    several watches counts on each of its keys.
    """
    if ended.sample is None:
        raise ValueError("no operations that expired were drawn: their keys cannot be looked up")
    one_in = ended.expired / max(ended.sample.num_rows, 1)
    few = operations.sparkSession.createDataFrame(ended.sample)
    return most_expired(operations.join(F.broadcast(few), ["instance", "op_id"]), one_in)


def most_expired(struck: DataFrame, one_in: float = 1.0) -> DataFrame:
    """Return the keys of operations that expired, those of most first: (instance, key, expired, one_in)."""
    keys = F.explode("watches.key").alias("key")  # so that Spark reads nothing else of the watches
    # A key twice in an operation, and an operation that is there twice, count once.
    found = struck.select("instance", "op_id", keys).where(F.col("key").isNotNull()).distinct()
    return (
        found.groupBy("instance", "key")
        .agg(F.round(F.count(F.lit(1)) * one_in).cast("long").alias("expired"))
        .orderBy(F.col("expired").desc(), "instance", "key")
        .limit(MOST_KEYS)
        .withColumn("one_in", F.lit(one_in))
    )


def counted_reasons(files: Iterable[Path]) -> Counter[str]:
    """Count the rows of files by their column `reason`."""
    counts = Counter[str]()
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=["reason"]):
            for entry in batch.column("reason").value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
    return counts
