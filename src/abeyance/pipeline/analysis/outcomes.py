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
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

__all__ = [
    "EXACT_UP_TO",
    "MOST_KEYS",
    "Ended",
    "Waits",
    "binned",
    "counted_reasons",
    "expired_keys",
    "look_at_outcomes",
]

MOST_KEYS: Final = 50
EXACT_UP_TO: Final = 100_000
"""Of more expired operations than this, the keys of at most so many are looked up, drawn at random."""

_BATCH_ROWS: Final = 1 << 17
_ADD_UP: Final = 32  # batches
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
            waits.add(_bins(batch))
            ended = batch.select(kept.column_names).filter(pc.equal(batch.column("outcome"), "expired"))
            drawn = ended.filter(pa.array(random.random(ended.num_rows) * one_in < 1))
            kept = pa.concat_tables([kept, pa.Table.from_batches([drawn]).cast(kept.schema)])
            while kept.num_rows > EXACT_UP_TO:
                one_in *= 2
                kept = kept.filter(pa.array(random.random(kept.num_rows) < 0.5)).combine_chunks()
    # In one piece: of a table with empty chunks Spark 4.3 loses rows.
    return Ended(waits.table(), kept.combine_chunks())


def binned(outcomes: DataFrame) -> DataFrame:
    """Return the same counts, made by Spark in one task: for outcomes that are written where they cannot be read."""
    length = F.floor(F.log1p(F.col("waited_ms") * 1000) * _BINS_PER_E).alias("bin")
    rows = outcomes.select(F.coalesce("kind", F.lit("")).alias("kind"), "outcome", length, "waited_ms")
    counted = F.max("waited_ms").alias("most_ms"), F.count(F.lit(1)).alias("operations")
    return rows.coalesce(1).groupBy(*_GROUP).agg(*counted)


class Waits:
    """Counts of outcomes, added up as they come: (kind, outcome, bin, most_ms, operations)."""

    def __init__(self) -> None:
        self._parts: list[pd.DataFrame] = []

    def add(self, some: pd.DataFrame) -> None:
        """Take the counts of some more."""
        if len(some):  # pandas guesses the types of a table without rows
            self._parts.append(some)
        if len(self._parts) == _ADD_UP:
            self._parts = [self._sum()]

    def table(self) -> pa.Table:
        """Return all counts."""
        found = self._sum() if self._parts else pd.DataFrame()
        return _WAITS.empty_table() if found.empty else pa.Table.from_pandas(found, _WAITS, preserve_index=False)

    def _sum(self) -> pd.DataFrame:
        grouped = pd.concat(self._parts).groupby(_GROUP, as_index=False, observed=True)
        return pd.DataFrame(grouped.agg(most_ms=("most_ms", "max"), operations=("operations", "sum")))


def _bins(batch: pa.RecordBatch) -> pd.DataFrame:
    """Count one batch. By one sort of integers: group and bin together."""
    kind, kinds = _numbered(batch.column("kind"))
    outcome, outcomes = _numbered(batch.column("outcome"))
    waited = batch.column("waited_ms").to_numpy()
    length = np.floor(np.log1p(waited * 1000) * _BINS_PER_E).astype(np.int64)
    width = int(length.max(initial=0)) + 1
    cell = (kind * len(outcomes) + outcome) * width + length
    order = np.argsort(cell)
    cell = cell[order]
    firsts = np.flatnonzero(np.diff(cell, prepend=-1))
    group, length = np.divmod(cell[firsts], width)
    return pd.DataFrame(
        {
            "kind": kinds[group // max(len(outcomes), 1)],
            "outcome": outcomes[group % max(len(outcomes), 1)],
            "bin": length,
            "most_ms": np.maximum.reduceat(waited[order], firsts) if len(firsts) else waited,
            "operations": np.diff(firsts, append=len(cell)),
        }
    )


def _numbered(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """Return a number per text, and the texts of the numbers; a null is ''."""
    encoded = texts.fill_null("").dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_numpy(zero_copy_only=False)


def expired_keys(ended: Ended, operations: DataFrame) -> DataFrame:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`.

    One scan of the `operations`. Where only one in `one_in` was looked up, `expired` is an estimate. An operation with
    several watches counts on each of its keys.
    """
    if ended.sample is None:
        raise ValueError("no operations that expired were drawn: their keys cannot be looked up")
    one_in = ended.expired / max(ended.sample.num_rows, 1)
    few = operations.sparkSession.createDataFrame(ended.sample)
    struck = operations.join(F.broadcast(few), ["instance", "op_id"])
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
