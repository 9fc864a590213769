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
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["EXACT_UP_TO", "MOST_KEYS", "Ended", "counted_reasons", "expired_keys", "look_at_outcomes"]

MOST_KEYS: Final = 50
EXACT_UP_TO: Final = 100_000
"""Of more expired operations than this, the keys of at most so many are looked up, drawn at random."""

_BATCH_ROWS: Final = 1 << 17
_BINS_PER_E: Final = 200  # a bin's longest wait is at most 0.5 % longer than its shortest
_GROUP: Final = ["kind", "outcome", "bin"]
_WAITS: Final = pa.schema(
    {"kind": pa.string(), "outcome": pa.string(), "bin": pa.int64(), "most_ms": pa.float64(), "operations": pa.int64()}
)


@dataclass(frozen=True)
class Ended:
    """What one pass over outcomes found."""

    waits: pa.Table
    """(kind, outcome, bin, most_ms, operations): counts, and the longest wait of each bin; `kind` '' where none is."""
    expired: int
    sample: pa.Table
    """(instance, op_id) of operations that expired: all, or `EXACT_UP_TO` at most."""


def look_at_outcomes(files: Iterable[Path]) -> Ended:
    """Count outcomes by kind, outcome and length of wait, in bins of 0.5 %, and draw a sample of those that expired."""
    random = np.random.default_rng(0)
    waits = pd.DataFrame()
    kept = pa.table({"instance": pa.array([], pa.string()), "op_id": pa.array([], pa.string())})
    expired, one_in = 0, 1
    for file in files:
        columns = ["instance", "op_id", "kind", "outcome", "waited_ms"]
        for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=columns):
            waits = _added(pd.concat([waits, _bins(batch)]))
            ended = batch.filter(pc.equal(batch.column("outcome"), "expired")).select(kept.column_names)
            expired += ended.num_rows
            drawn = ended.filter(pa.array(random.random(ended.num_rows) * one_in < 1))
            kept = pa.concat_tables([kept, pa.Table.from_batches([drawn]).cast(kept.schema)])
            while kept.num_rows > EXACT_UP_TO:
                one_in *= 2
                kept = kept.filter(pa.array(random.random(kept.num_rows) < 0.5)).combine_chunks()
    table = _WAITS.empty_table() if waits.empty else pa.Table.from_pandas(waits, _WAITS, preserve_index=False)
    # In one piece: of a table with empty chunks Spark 4.3 loses rows.
    return Ended(table, expired, kept.combine_chunks())


def _bins(batch: pa.RecordBatch) -> pd.DataFrame:
    waited = batch.column("waited_ms").to_numpy()
    columns = {
        # As categories: a group is then a few integers, not texts.
        **{name: pd.Categorical(batch.column(name).fill_null("").to_pandas()) for name in ("kind", "outcome")},
        "bin": np.floor(np.log1p(waited * 1000) * _BINS_PER_E).astype(np.int64),
        "most_ms": waited,
        "operations": np.ones(len(waited), np.int64),
    }
    return _added(pd.DataFrame(columns)).astype({"kind": object, "outcome": object})


def _added(bins: pd.DataFrame) -> pd.DataFrame:
    """Add up bins of the same group."""
    grouped = bins.groupby(_GROUP, as_index=False, observed=True)
    return pd.DataFrame(grouped.agg(most_ms=("most_ms", "max"), operations=("operations", "sum")))


def expired_keys(ended: Ended, operations: DataFrame) -> DataFrame:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`.

    One scan of the `operations`. Where only one in `one_in` was looked up, `expired` is an estimate. An operation with
    several watches counts on each of its keys.
    """
    one_in = ended.expired / max(ended.sample.num_rows, 1)
    few = operations.sparkSession.createDataFrame(ended.sample)
    struck = operations.join(F.broadcast(few), ["instance", "op_id"])
    keys = F.explode(F.transform("watches", lambda watch: watch["key"])).alias("key")
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
