"""What the files of outcomes come to: one pass over them in this process, and a look for the keys of what expired.

Not by Spark: the columns are few, so Arrow and numpy need a fraction of a microsecond per row, while even the smallest
of Spark's jobs takes a second. Memory: a batch of rows, the bins, and the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.results.waits import BINS_PER_E, COUNTED_BY, MOST_KEYS, Waits, bins

__all__ = [
    "EXACT_UP_TO",
    "SAMPLED",
    "Counted",
    "Ended",
    "Sample",
    "binned",
    "count_outcomes",
    "counted_reasons",
    "expired_keys",
    "most_expired",
]

EXACT_UP_TO: Final = 100_000
"""Of more expired operations than this, the keys of at most so many are looked up, drawn at random."""

SAMPLED: Final = ["instance", "op_id"]

_BATCH_ROWS: Final = 1 << 17

_FEW: Final = 100
"""Operations whose keys are counted in this process."""


@dataclass(frozen=True)
class Ended:
    """What one pass over outcomes found."""

    waits: pa.Table
    """(kind, outcome, bin, most_ms, operations): counts, and the longest wait of each bin; `kind` '' where none is."""
    sample: pa.Table | None = None
    """(instance, op_id) of operations that expired: all, or `EXACT_UP_TO` at most. None where none were drawn."""
    pending: int = 0
    """Operations that never end: their countdown is paused for ever. `waits` has none of them."""

    @property
    def expired(self) -> int:
        """How many operations expired."""
        return self.count("expired")

    def count(self, outcome: str) -> int:
        """Return how many operations ended in this way."""
        of_them = pc.equal(self.waits["outcome"], outcome)
        return pc.sum(self.waits["operations"].filter(of_them)).as_py() or 0


class Sample:
    """Operations drawn at random from all that are added, each as likely as any other: `EXACT_UP_TO` at most."""

    def __init__(self) -> None:
        self.one_in = 1
        """Of so many, one is kept."""
        self._random = np.random.default_rng(0)
        self._kept = pa.table({name: pa.array([], pa.string()) for name in SAMPLED})

    def add(self, some: pa.Table) -> None:
        """Draw from (instance, op_id) of some more."""
        self.add_drawn(some.filter(pa.array(self._random.random(some.num_rows) * self.one_in < 1)))

    def make_room(self, rows: int) -> int:
        """Return of how many one is to be drawn, where `rows` come that this process is not to hold all at once."""
        while rows > EXACT_UP_TO * self.one_in:
            self._halve()
        return self.one_in

    def add_drawn(self, drawn: pa.Table) -> None:
        """Keep what was drawn elsewhere, one in `one_in`."""
        self._kept = pa.concat_tables([self._kept, drawn.cast(self._kept.schema)])
        while self._kept.num_rows > EXACT_UP_TO:
            self._halve()

    def _halve(self) -> None:
        self.one_in *= 2
        self._kept = self._kept.filter(pa.array(self._random.random(self._kept.num_rows) < 0.5)).combine_chunks()

    def table(self) -> pa.Table:
        """Return what was drawn, in one piece: of a table with empty chunks Spark 4.3 loses rows."""
        return self._kept.combine_chunks()


@dataclass(frozen=True)
class Counted:
    """What is counted and drawn while outcomes go by."""

    waits: Waits = field(default_factory=Waits)
    sample: Sample = field(default_factory=Sample)

    def ended(self) -> Ended:
        """Return all of it."""
        return Ended(self.waits.table(), self.sample.table(), self.waits.pending)


def count_outcomes(files: Iterable[Path]) -> Ended:
    """Count outcomes by kind, outcome and length of wait, in bins of 0.5 %, and draw a sample of those that expired."""
    found = Counted()
    for file in files:
        columns = ["instance", "op_id", "kind", "outcome", "waited_ms"]
        for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=columns):
            found.waits.pending += batch.column("waited_ms").null_count
            batch = batch.filter(pc.is_valid(batch.column("waited_ms")))  # what is pending for ever has no length
            found.waits.add(bins(batch))
            expired = batch.select(SAMPLED).filter(pc.equal(batch.column("outcome"), "expired"))
            found.sample.add(pa.Table.from_batches([expired]))
    return found.ended()


def binned(outcomes: DataFrame) -> DataFrame:
    """Return the same counts, made by Spark in one job: for outcomes that cannot be read as files.

    What is pending for ever has no length: its `bin` is null.
    """
    length = F.floor(F.log1p(F.col("waited_ms") * 1000) * BINS_PER_E).alias("bin")
    rows = outcomes.select(F.coalesce("kind", F.lit("")).alias("kind"), "outcome", length, "waited_ms")
    counted = F.max("waited_ms").alias("most_ms"), F.count(F.lit(1)).alias("operations")
    return rows.groupBy(*COUNTED_BY).agg(*counted)


def expired_keys(ended: Ended, operations: DataFrame) -> pa.Table:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`.

    One scan of the `operations`. Where only one in `one_in` was looked up, `expired` is an estimate. An operation with
    several watches counts on each of its keys.
    """
    if ended.sample is None:
        raise ValueError("no operations that expired were drawn: their keys cannot be looked up")
    if ended.sample.num_rows <= _FEW and ended.sample.num_rows == ended.expired:
        return _keys_of_few(ended.sample, operations)
    one_in = ended.expired / max(ended.sample.num_rows, 1)
    few = operations.sparkSession.createDataFrame(ended.sample)
    return most_expired(operations.join(F.broadcast(few), SAMPLED), one_in).toArrow()


def _keys_of_few(expired: pa.Table, operations: DataFrame) -> pa.Table:
    """Count the keys of a few operations here: for Spark it would be four stages, half a second in a small command."""
    # The ids stand in the query. Of all that it finds, some may have one operation's instance and another's id.
    of_them = [F.col(name).isin(expired[name].unique().to_pylist()) for name in SAMPLED]
    found = operations.where(of_them[0] & of_them[1]).select(*SAMPLED, "watches.key").toArrow()
    wanted = set(zip(*expired.to_pydict().values(), strict=True))
    rows = {
        (instance, op_id, key)
        for instance, op_id, keys in zip(*found.to_pydict().values(), strict=True)
        if (instance, op_id) in wanted
        for key in keys or ()
        if key is not None
    }
    counts = Counter((instance, key) for instance, _, key in rows)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_KEYS]
    return pa.table(
        {
            "instance": pa.array([instance for (instance, _), _ in most], pa.string()),
            "key": pa.array([key for (_, key), _ in most], pa.string()),
            "expired": pa.array([count for _, count in most], pa.int64()),
            "one_in": pa.array([1.0] * len(most), pa.float64()),
        }
    )


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
